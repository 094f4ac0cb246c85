-- The time of this call in integer microseconds: the server's own, or the one a test hands in.
local function clock_us(given)
  if given ~= '' then
    return tonumber(given)
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end
