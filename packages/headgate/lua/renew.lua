-- renew.lua: hold places for another while.
-- KEYS[i]    state of renewal i; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2..]  limits as in decide.lua; then for each key: which limit, units, time taken
-- returns    for each key 1 when the place is held, 0 when it was gone and there is no room, -2 for a state that cannot
--            be read

-- @include timed
-- @include checks

local limits = read_limits()
local reply = {}
for index, key in ipairs(KEYS) do
  local limit, units, taken_us = limits[next_number()], next_number(), next_number()
  local state = limit.algorithm.load(key, limit)
  reply[index] = state and limit.algorithm.renew(limit, state, units, taken_us) or -2
end
return reply
