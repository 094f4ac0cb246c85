-- The time of this call in integer microseconds: the server's own, or the one a test hands in.

-- @fragment clock.read
-- In: `clock`, the time of a test, or '' or nil. Out: `now`, `grace_ms`.
local now, grace_ms = clock, 0
if now and now ~= '' then
  -- A test's clock stands still while the server's expiry runs on.
  now, grace_ms = tonumber(now), 600000
else
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- @fragment clock.now_text
-- The time as it is written, for those who write it: once a call.
now_text = now_text or string.format('%d', now)

-- @fragment clock.text
-- Whole numbers go to the server as text: it takes twice as long to turn them into text itself.
local function text_of(number)
  return string.format('%d', number)
end

-- The key is dropped when it can no longer matter. That only frees memory: no verdict depends on it.
local function expire_after(key, keep_us)
  redis.call('PEXPIRE', key, text_of(math.ceil(keep_us / 1000) + grace_ms))
end
