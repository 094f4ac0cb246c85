-- heartbeat.lua: say that a process is there, count those that said so lately, and tell when it last had said so.
-- KEYS[1]    the fleet: a sorted set of processes by when they were last heard of
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2]    name of the process: '<service>/<id>', or '<id>' of one that names no service and counts for each
-- ARGV[3]    for how many microseconds it counts
-- ARGV[4]    for how many microseconds it is remembered
-- ARGV[5]    the service whose processes are counted, with those that name none; '' counts all
-- returns    how many processes count now, the time of this beat, that of the one before as remembered, or '',
--            how many are remembered, and how many are remembered of all services

-- @include timed

local keep_us = tonumber(ARGV[3])
local remember_us = tonumber(ARGV[4])
local service = ARGV[5]
local before = redis.call('ZSCORE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - remember_us)
-- A clock that stepped back leaves entries in the future; they would be counted for ever.
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + keep_us, '+inf')
expire_after(KEYS[1], remember_us)

local function count(from, to)
  if service == '' then return redis.call('ZCOUNT', KEYS[1], from, to) end
  local found = 0
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], from, to)) do
    local slash = string.find(member, '/', 1, true)
    if not slash or string.sub(member, 1, slash - 1) == service then found = found + 1 end
  end
  return found
end

local live = count(now - keep_us, '+inf')
-- Mostly none: each process is looked at once.
local missed = count('-inf', '(' .. string.format('%.0f', now - keep_us))
return { live, string.format('%.0f', now), before or '', live + missed, redis.call('ZCARD', KEYS[1]) }
