-- credit.lua: add units to a quota, unless that was done already, and tell its state.
-- KEYS[1]    state of the limit
-- KEYS[2]    the mark of this credit, in the same hash slot; left out if nothing is added
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2]    its kind and three numbers (`@kind` of its Lua file)
-- ARGV[6]    units, or 0 only to tell the state
-- ARGV[7]    '1' for units that last, '0' for units of this period
-- ARGV[8]    for how many milliseconds the mark is kept
-- returns    1 and the state (`@state` of its Lua file), 0 and the state if it was done already; and the time in microseconds

-- @include state

-- @kinds credit
local function credit_KIND(key_N, amount, lasts, NUMBERS)
  local cost_N = 0
  -- @prepare
  -- @load
  -- @deny
  -- @credit
end
-- @end
local credits = { KINDS }
expect_current(2, 1000, 1)

local amount = ARGV[6] + 0
local is_done = amount > 0 and call('EXISTS', KEYS[2]) == 1
if is_done then
  amount = 0
end
local reply = credits[ARGV[2]](KEYS[1], amount, ARGV[7] == '1', ARGV[3], ARGV[4], ARGV[5])
if amount > 0 then
  call('SET', KEYS[2], '1', 'PX', ARGV[8])
end
if is_done then
  reply[1] = 0
end
reply[#reply + 1] = now
return reply
