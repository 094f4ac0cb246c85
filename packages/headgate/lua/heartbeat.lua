-- heartbeat.lua: say that a process is there, and count those that said so lately.
-- KEYS[1]    the fleet: a sorted set of processes by when they were last heard of
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2]    name of the process
-- ARGV[3]    for how many microseconds it counts
-- returns    how many processes count now

-- @include clock

local now = clock_us(ARGV[1])
local keep_us = tonumber(ARGV[3])
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - keep_us)
-- A clock that stepped back leaves entries in the future; they would be counted for ever.
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + keep_us, '+inf')
expire_after(KEYS[1], keep_us)
return redis.call('ZCARD', KEYS[1])
