-- renew.lua: hold permits for another while.
-- KEYS[i]    state of renewal i; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- then       for each key: its kind and three numbers (`@kind` of its Lua file), units, time taken
-- returns    for each key 1 when the permit is held, 0 when it was gone and there is no room, -2 for a state that cannot be read

-- @include state

-- @kinds renew
local function renew_KIND(key_N, amount, charged_at, NUMBERS)
  local cost_N = 0
  -- @prepare
  -- @load
  -- @renew
end
-- @end
local renewals = { KINDS }

local reply = {}
for index, key in ipairs(KEYS) do
  local at = 6 * index - 4
  local is_done, held =
    pcall(renewals[ARGV[at]], key, ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
  if not is_done and not problem_of_key(held) then
    return failed(held)
  end
  reply[index] = is_done and held or -2
end
return reply
