-- decide.lua: for each question, charge the first alternative all of whose checks fit, or nothing.
-- KEYS[i]    state of check i, in the order of ARGV; all in one hash slot on a cluster
-- ARGV[1]    clock in microseconds, or '' for this server's TIME (tests pass a clock)
-- ARGV[2..]  limits: how many, then four numbers each (include/checks.lua)
--            questions: how many, then each: how many alternatives, for each how many checks, two numbers a check;
--            how many shadow checks, two numbers each
-- returns    for each question: index of the alternative charged or -1; for every alternative looked at and then the
--            shadow checks, four integers a check: wait, remaining, reset in microseconds, time charged.
--            -2 and an error text for a question whose state cannot be read; the others stand.
-- expiry     frees memory; no verdict depends on it

-- @include clock
-- @include checks
-- @include verdicts

local function decide_shadow(reply, check, now)
  local fits, failure = look({ check }, now)
  if failure then
    return add_unreadable(reply)
  end
  add_verdict(reply, check, now, check.wait_us, fits and charge(check, now) or -1)
end

local function charge_all(reply, checks, now)
  for _, check in ipairs(checks) do
    add_verdict(reply, check, now, 0, charge(check, now))
  end
end

local function show_all(reply, checks, now)
  for _, check in ipairs(checks) do
    add_verdict(reply, check, now, check.wait_us, -1)
  end
end

local function decide(reply, alternatives, shadow, now)
  local size = #reply
  reply[size + 1] = -1
  for index, checks in ipairs(alternatives) do
    local fits, failure = look(checks, now)
    if failure then
      return fail(reply, size, failure)
    end
    if fits then
      reply[size + 1] = index - 1
      charge_all(reply, checks, now)
      break
    end
    show_all(reply, checks, now)
  end
  for _, check in ipairs(shadow) do
    decide_shadow(reply, check, now)
  end
end

return answer_questions(decide)
