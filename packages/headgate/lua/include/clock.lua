-- The time of this call in integer microseconds: the server's own, or the one a test hands in.

-- @fragment clock.read
-- In: `clock`, the time of a test, or '' or nil, and the names of include/names.lua. Out: `now`, `grace_ms`.
local now, grace_ms = clock, 0
if now and now ~= '' then
  -- A test's clock stands still while the server's expiry runs on.
  now, grace_ms = now + 0, 600000
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- @fragment clock.now_text
-- The time as it is written, for those who write it: once a call.
now_text = now_text or format('%d', now)

-- @fragment clock.text
-- Whole numbers go to the server as text: it takes twice as long to turn them into text itself.
local function text_of(number)
  return format('%d', number)
end

-- The key is dropped when it can no longer matter. That only frees memory: no verdict depends on it.
local function expire_after(key, keep_us)
  call('PEXPIRE', key, text_of(ceil(keep_us / 1000) + grace_ms))
end
