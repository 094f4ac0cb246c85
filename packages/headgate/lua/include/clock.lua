-- The time of this call in integer microseconds: the server's own, or the one a test hands in.
local grace_ms = 0

local function clock_us(given)
  if given ~= '' then
    -- A test's clock stands still while the server's expiry runs on.
    grace_ms = 600000
    return tonumber(given)
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- The key is dropped when it can no longer matter. That only frees memory: no verdict depends on it.
local function expire_after(key, keep_us)
  redis.call('PEXPIRE', key, math.ceil(keep_us / 1000) + grace_ms)
end
