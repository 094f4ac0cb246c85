-- heartbeat.lua: say that a process is there, count those that said so lately, and tell when it last had said so.
-- KEYS[1]    the fleet: a sorted set of processes by when they were last heard of
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2]    name of the process
-- ARGV[3]    for how many microseconds it counts
-- ARGV[4]    for how many microseconds it is remembered
-- returns    how many processes count now, the time of this beat, and that of the one before as remembered, or ''

-- @include clock

local keep_us = tonumber(ARGV[3])
local remember_us = tonumber(ARGV[4])
local before = redis.call('ZSCORE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - remember_us)
-- A clock that stepped back leaves entries in the future; they would be counted for ever.
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + keep_us, '+inf')
expire_after(KEYS[1], remember_us)
return { redis.call('ZCOUNT', KEYS[1], now - keep_us, '+inf'), string.format('%.0f', now), before or '' }
