-- statistics.lua: leave what a process has counted in the last second, and forget those that have left none for a while.
-- KEYS[1]    when each process last did: a sorted set of processes by time
-- KEYS[2]    what each counted: a hash of reports by process
-- KEYS[3]    denials that are kept: a stream
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2]    name of the process; '' only reads
-- ARGV[3]    its report
-- ARGV[4]    for how many microseconds a report is kept
-- ARGV[5]    for how many microseconds denials are
-- ARGV[6]    how many processes, and ARGV[7] how many denials, are kept at most
-- ARGV[8...] denials; to read, the entry after which to begin ('' with the oldest, 'none' none), and how many at most
-- returns    the time; with no name also {process, report, ...} and the denials, the oldest first

-- @include timed

local keep_us = tonumber(ARGV[4])
local name = ARGV[2]
local oldest = text_of(math.max(0, math.floor((now - tonumber(ARGV[5])) / 1000)))

local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - keep_us)
for _, member in ipairs(gone) do redis.call('HDEL', KEYS[2], member) end
if #gone > 0 then redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - keep_us) end

if name == '' then
  local denials, after = {}, ARGV[8]
  if after ~= 'none' then
    local from = after == '' and oldest or '(' .. after
    denials = redis.call('XRANGE', KEYS[3], from, '+', 'COUNT', ARGV[9])
  end
  return { text_of(now), redis.call('HGETALL', KEYS[2]), denials }
end

-- A process that finds no room is not shown; the others are not pushed out by it.
local is_known = redis.call('ZSCORE', KEYS[1], name)
if is_known or redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[6]) then
  redis.call('ZADD', KEYS[1], now, name)
  redis.call('HSET', KEYS[2], name, ARGV[3])
  expire_after(KEYS[1], keep_us)
  expire_after(KEYS[2], keep_us)
end

for i = 8, #ARGV do redis.call('XADD', KEYS[3], 'MAXLEN', ARGV[7], '*', 'denial', ARGV[i]) end
if #ARGV >= 8 then
  redis.call('XTRIM', KEYS[3], 'MINID', oldest)
  expire_after(KEYS[3], tonumber(ARGV[5]))
end
return { text_of(now) }
