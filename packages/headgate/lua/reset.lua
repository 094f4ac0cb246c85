-- reset.lua: forget what was used. A key that holds something Headgate did not write is left alone.
-- KEYS[i]    state of limit i; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- then       for each key: its kind and three numbers (`@kind` of its Lua file)
-- returns    how many were forgotten
-- The time of the reset stays, for as long as something charged before could still be given back.

-- @include state

-- @kinds reset
local function reset_KIND(key_N, NUMBERS)
  local cost_N = 0
  -- @prepare
  -- @load
  -- @reset
end
-- @end
local resets = { KINDS }
expect_current(2, 4, 1)

local forgotten = 0
for index, key in ipairs(KEYS) do
  local at = 4 * index - 2
  if call('EXISTS', key) == 1 then
    local is_done, problem = pcall(resets[ARGV[at]], key, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
    if is_done then
      forgotten = forgotten + 1
    elseif not problem_of_key(problem) then
      return failed(problem)
    end
  end
end
return forgotten
