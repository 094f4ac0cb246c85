-- peek.lua: tell the state of each key, and write nothing.
-- KEYS[i]    state of limit i; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- then       for each key: its kind, the units it is asked for, and three numbers (`@kind` of its Lua file)
-- returns    for each key a list: 0 and the state (`@state` of its Lua file), or one error text. Last the time in microseconds

-- @include state

-- @kinds
local function look_at_KIND(key_N, cost_N, NUMBERS)
  -- @prepare
  -- @load
  -- @deny
  return { 0, STATE }
end
-- @end
local looks = { KINDS }
expect_current(2, 5, 2)

local reply = {}
for index, key in ipairs(KEYS) do
  local at = 5 * index - 3
  local is_done, state = pcall(looks[ARGV[at]], key, ARGV[at + 1] + 0, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
  local text = not is_done and problem_of_key(state)
  if not is_done and not text then
    return failed(state)
  end
  reply[index] = is_done and state or { text }
end
reply[#reply + 1] = now
return reply
