-- Answers any questions: of any limits, costs, alternatives and shadow checks.
-- Making a function or a table takes longer than the arithmetic of a check, so the state of a check is in locals, and
-- in a list only while a question of several checks is looked at.
local LOG, COUNTER, PARTS, BUCKET = 1, 2, 3, 4
-- @include fields
local clock = ARGV[1]
-- @inline clock.read
-- @inline check.locals
local waits = {}

-- Four numbers a limit: algorithm, limit, window in microseconds or refill per second, buckets.
local numbers, position = { 0, 0 }, 3 + 4 * ARGV[2]
for index = 3, position - 1 do
  numbers[index] = ARGV[index] + 0
end

-- The shape of what is asked: alternatives, and then shadow checks, are groups of checks.
local limit_of, cost_of, last_of, alternatives, groups, checks = {}, {}, {}, 0, 0, 0
local reply, size, key_at = { now }, 1, 0

while ARGV[position] do
  local questions = ARGV[position] + 0
  local is_single = questions <= 0
  position = position + 1
  if is_single then
    limit_of[1], cost_of[1], last_of[1] = -questions, 1, 1
    if questions == 0 then
      limit_of[1], cost_of[1] = ARGV[position] + 0, ARGV[position + 1] + 0
      position = position + 2
    end
    questions, alternatives, groups, checks = 1, 1, 1, 1
  else
    -- @inline question.shape
  end
  for _ = 1, questions do
    -- @inline question.answer
  end
end
return reply

-- @fragment question.shape
alternatives, checks = ARGV[position] + 0, 0
for group = 1, alternatives + 1 do
  local of_group = ARGV[position + 1] + 0
  position = position + 1
  for nth = 1, of_group do
    checks = checks + 1
    limit_of[checks], cost_of[checks] = ARGV[position + 1] + 0, ARGV[position + 2] + 0
    position = position + 2
    if group > alternatives then
      last_of[alternatives + nth] = checks
    end
  end
  if group > alternatives then
    groups = alternatives + of_group
  else
    last_of[group] = checks
  end
end
position = position + 1

-- @fragment question.answer
local question_at, charged, last = size + 1, -1, 0
if not is_single then
  size = question_at
end
for group = 1, groups do
  local first, fits, is_shadow = last + 1, true, group > alternatives
  last = last_of[group]
  if is_shadow or charged < 0 then
    failure = nil
    for check = first, last do
      -- @inline check.open
      -- @inline check.look
      if failure then
        break
      end
      fits = fits and wait_us == 0
      if first < last then
        -- @inline check.keep
      end
    end
    if failure and not is_shadow then
      -- A question that could not be answered is an answer of its own: the others of the call stand.
      for index = size, question_at, -1 do
        reply[index] = nil
      end
      charged, size = { failure }, question_at
      reply[size] = charged
      break
    elseif failure then
      -- It would not have denied anybody, and must not fail the request either.
      size = size + 1
      reply[size] = { 0, 0, 0, -1 }
    else
      for check = first, last do
        if first < last then
          -- @inline check.open
          -- @inline check.recall
        end
        -- @inline check.answer
      end
      if fits and not is_shadow then
        charged = group - 1
      end
    end
  end
end
key_at = key_at + checks
if not is_single then
  reply[question_at] = charged
end

-- @fragment check.answer
-- An integer says that a check was charged at the time of the call, and what is left; all else takes a list.
size = size + 1
local charged_at = -1
if fits and CHARGES and cost > 0 then
  -- @inline check.charge
  charged_at = at
end
if charged_at == now and left then
  reply[size] = left
else
  -- @inline check.tell
  reply[size] = { wait_us == NEVER and -1 or wait_us, remaining, reset_us, charged_at }
end
