-- changes.lua: note what an operator has changed, if there is anything to note, and read what was noted.
-- KEYS[1]    the changes: a list of '<noted at ms> <who and what>', the newest first
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2]    who and what, or '' only reads
-- ARGV[3]    how many are kept
-- ARGV[4]    for how many microseconds after the last one
-- returns    the changes, the newest first

-- @include timed

if ARGV[2] ~= '' then
  redis.call('LPUSH', KEYS[1], string.format('%.0f ', math.floor(now / 1000)) .. ARGV[2])
  redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[3]) - 1)
  expire_after(KEYS[1], tonumber(ARGV[4]))
end
return redis.call('LRANGE', KEYS[1], 0, -1)
