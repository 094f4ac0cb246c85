-- history.lua: keep a point of a chart in a ring, or read the ring.
-- KEYS[1]    the ring: a hash of '<start in ms> <seconds it covers> <point>' by place
-- ARGV[1]    the place in the ring; '' only reads
-- ARGV[2]    when the point starts, in milliseconds
-- ARGV[3]    how many seconds of its time it covers: of several servers' points the one that covers most is kept
-- ARGV[4]    the point
-- ARGV[5]    for how many milliseconds after the last point the ring is kept
-- returns    {place, point, ...} if it only reads

if ARGV[1] == '' then
  return redis.call('HGETALL', KEYS[1])
end
local known = redis.call('HMGET', KEYS[1], ARGV[1])[1] or '0 0 '
local start, seconds = string.match(known, '^(%d+) (%d+) ')
local newer = tonumber(ARGV[2]) - (tonumber(start) or 0)
if newer > 0 or (newer == 0 and tonumber(ARGV[3]) > (tonumber(seconds) or 0)) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[4])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
return {}
