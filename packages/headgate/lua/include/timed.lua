-- Short names, and the time of this call: ARGV[1] is a test's clock in microseconds, or '' for this server's own.
local call, find, format, ceil, floor = redis.call, string.find, string.format, math.ceil, math.floor
local clock, now, grace_ms, shift_ms = ARGV[1], 0, 0, 0
if clock == '' then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
else
  -- @include test_clock
end
local now_ms = (now - now % 1000) / 1000
local now_text = format('%016d', now)

-- The key is dropped when it can no longer matter.
local function expire_after(key, keep_us)
  call('PEXPIRE', key, format('%d', ceil(keep_us / 1000) + grace_ms))
end

local function text_of(number)
  return format('%d', number)
end
