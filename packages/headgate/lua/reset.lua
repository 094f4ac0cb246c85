-- reset.lua: forget what was used. A key that holds something Headgate did not write is left alone.
-- KEYS[i]    state of check i; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2..]  limits as in decide.lua; then for each key: which limit
-- returns    how many were forgotten
-- The time of the reset stays, for as long as something charged before could still be given back.

-- @include timed
-- @include checks
-- @include new_life

local limits = read_limits()
local forgotten = 0
for _, key in ipairs(KEYS) do
  local limit = limits[next_number()]
  local state = limit.algorithm.load(key, limit)
  if state and redis.call('EXISTS', key) == 1 then
    start_new_life(limit, key, state)
    forgotten = forgotten + 1
  end
end
return forgotten
