-- refund.lua: take charges back as far as they still count, or charge more, whether it fits or not.
-- KEYS[i]    state of refund i; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2..]  limits as in decide.lua; then for each key: which limit, units, or less than 0 to charge more, time charged or
--            -1 for the oldest,
--            time since which they were held in advance or -1
-- returns    for each key the units given back; -2 for a state that cannot be read

-- @include timed
-- @include checks
-- @include new_life

local limits = read_limits()
local reply = {}
for index, key in ipairs(KEYS) do
  local limit, units, charged_at, held_since = limits[next_number()], next_number(), next_number(), next_number()
  if charged_at == -1 then
    charged_at = nil
  end
  if held_since == -1 then
    held_since = now
  end
  local state = limit.algorithm.load(key, limit)
  if not state then
    reply[index] = -2
  elseif units < 0 then
    limit.algorithm.charge_beyond(limit, state, -units)
    reply[index] = 0
  elseif is_of_former_life(limit, key, charged_at) then
    reply[index] = 0
  else
    reply[index] = limit.algorithm.refund(limit, state, units, charged_at, held_since)
  end
end
return reply
