-- The time of this call in integer microseconds: the server's own, or the one a test hands in.
local now_text, grace_ms = ARGV[1], 0

if now_text == '' then
  local time = redis.call('TIME')
  now_text = time[1] .. string.sub('00000', #time[2]) .. time[2]
else
  -- A test's clock stands still while the server's expiry runs on.
  grace_ms = 600000
end

local now = tonumber(now_text)

-- Whole numbers go to the server as text: it takes twice as long to turn them into text itself.
local function text_of(number)
  return string.format('%d', number)
end

-- The key is dropped when it can no longer matter. That only frees memory: no verdict depends on it.
local function expire_after(key, keep_us)
  redis.call('PEXPIRE', key, text_of(math.ceil(keep_us / 1000) + grace_ms))
end
