-- refund.lua: take charges back as far as they still count, or charge more, whether it fits or not.
-- KEYS[i]    state of refund i; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- then       for each key: its kind and three numbers (`@kind` of its Lua file); units, or less than 0 to charge more; time
--            charged or -1 for the oldest; time since which they were held in advance or -1
-- returns    for each key the units given back; -2 for a state that cannot be read

-- @include state

-- @kinds refund
local function refund_KIND(key_N, amount, charged_at, held_since, NUMBERS)
  local cost_N = 0
  -- @prepare
  -- @load
  -- @refund
end
-- @end
local refunds = { KINDS }

-- @kinds beyond
local function charge_beyond_KIND(key_N, amount, charged_at, held_since, NUMBERS)
  local cost_N = 0
  -- @prepare
  -- @load
  -- @beyond
  return 0
end
-- @end
local charges = { KINDS }
expect_current(2, 7, 1)

local reply = {}
for index, key in ipairs(KEYS) do
  local at = 7 * index - 5
  local units, charged_at, held_since = ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6] + 0
  local change = (units < 0 and charges or refunds)[ARGV[at]]
  reply[index] = 0
  -- Permits are as many as are held: nothing is charged beyond them.
  if change then
    local is_done, back = pcall(
      change, key, math.abs(units), charged_at ~= -1 and charged_at or nil, held_since ~= -1 and held_since or now,
      ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    )
    if not is_done and not problem_of_key(back) then
      return failed(back)
    end
    reply[index] = is_done and back or -2
  end
end
return reply
