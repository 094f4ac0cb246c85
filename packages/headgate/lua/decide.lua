-- decide.lua: for each question, charge the first alternative all of whose limits have room, or nothing; and each shadow limit
-- that has room. For questions of one plan that no straight-line script is made for.
-- KEYS       the state of each limit, question by question; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2]    how many alternatives; for each the index of its last limit; how many limits with the shadow limits
-- then       for each limit: its kind, the units it is asked for, and three numbers (`@kind` of its Lua file)
-- returns    for each question: the index of the alternative charged or -1, or a list of one error text; and for each
--            limit an integer, what a charge at this time left, or a list: 1 or 0 for charged or not and the state that was
--            read (`@state` of its file), or one error text; 0 where it was not looked at. Last the time in microseconds

-- @include state

-- @kinds
local function check_KIND(key_N, cost_N, NUMBERS)
  -- @prepare
  -- @load
  local function charge()
    -- @charge
  end
  local function state(is_charged)
    if is_charged == 0 then
      -- @deny
    end
    return { is_charged, STATE }
  end
  return left_N, odd_N, charge, state
end
-- @end
local checks = { KINDS }

local alternatives = ARGV[2] + 0
local limits = math.max(1, ARGV[3 + alternatives] + 0)
expect_current(alternatives + 4, 5, 2)

local function look(question, index)
  local at = 5 * index + alternatives - 1
  local cost = ARGV[at + 1] + 0
  local left, is_odd, charge, state =
    checks[ARGV[at]](KEYS[question + index], cost, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
  return { left = left, is_odd = is_odd, charge = charge, state = state, cost = cost }
end

-- Charges limits if all have room. Returns whether they have, and what is told of each.
local function charge_all(question, from, to)
  local looked, told, fits = {}, {}, true
  for index = from, to do
    looked[index] = look(question, index)
    fits = fits and looked[index].left >= 0
  end
  for index = from, to do
    local check = looked[index]
    local is_charged = fits and check.cost > 0
    if is_charged then
      check.charge()
    end
    told[index] = is_charged and not check.is_odd and check.left or check.state(is_charged and 1 or 0)
  end
  return fits, told
end

local reply = {}
for question = 0, #KEYS - 1, limits do
  local charged, values, from = -1, {}, 1
  for alternative = 1, alternatives do
    local to = ARGV[2 + alternative] + 0
    if charged == -1 then
      local is_done, fits, told = pcall(charge_all, question, from, to)
      if not is_done then
        local text = problem_of_key(fits)
        if not text then
          return failed(fits)
        end
        charged = { text }
      else
        for index, value in pairs(told) do
          values[index] = value
        end
        charged = fits and alternative - 1 or -1
      end
    end
    from = to + 1
  end
  -- Nothing is charged for a question that could not be answered.
  for index = type(charged) == 'table' and limits + 1 or from, limits do
    -- A shadow limit that cannot be read would not have denied anybody, and must not fail the request either.
    local is_done, fits, told = pcall(charge_all, question, index, index)
    local text = not is_done and problem_of_key(fits)
    if not is_done and not text then
      return failed(fits)
    end
    values[index] = is_done and told[index] or { text }
  end
  reply[#reply + 1] = charged
  for index = 1, limits do
    reply[#reply + 1] = values[index] or 0
  end
end
reply[#reply + 1] = now
return reply
