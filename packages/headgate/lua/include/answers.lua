-- Replies are flat lists of integers.
local reply, reply_size, question_at = {}, 0, 0

-- A question that could not be answered is an answer of its own: the others of the call stand.
local function fail(failure)
  for index = reply_size, question_at + 1, -1 do
    reply[index] = nil
  end
  reply[question_at + 1] = -2
  reply[question_at + 2] = failure
  reply_size = question_at + 2
end

-- Three integers say all about a question of one check: when it was charged; or -1 when it fits and was not; or -3 for
-- "never"; or -3 less the wait. Then remaining, and reset in microseconds.
local function answer_one(key, limit, cost)
  local algorithm = limit.algorithm
  local state, failure = algorithm.load(key, limit)
  if not state then
    return fail(failure)
  end
  local wait_us, first = algorithm.wait_us(limit, state, cost), -1
  if wait_us > 0 then
    first = wait_us == NEVER and -3 or -3 - wait_us
  elseif CHARGES and cost > 0 then
    first = algorithm.charge(limit, state, cost)
  end
  local size = reply_size
  reply[size + 1] = first
  reply[size + 2], reply[size + 3] = algorithm.tell(limit, state)
  reply_size = size + 3
end

-- What a key holds can break the arithmetic in ways its first look does not show. That is the key's own failure; what
-- the server refuses (out of memory, read-only) is not, and must reach the caller as it is.
local function guarded(answer, first, second, third)
  local answered, failure = pcall(answer, first, second, third)
  if answered then
    return
  end
  if type(failure) ~= 'string' or not string.find(failure, '^user_%a+:%s?%d+: ') then
    error(failure, 0)
  end
  fail(failure)
end

-- @include several

-- Takes the questions of the call one after the other.
local function answer_questions()
  local limits, key_position = read_limits(), 0
  local answer_several
  for _ = 1, next_number() do
    question_at = reply_size
    local which, cost = next_number(), 1
    if which == 0 then
      answer_several = answer_several or make_several(limits)
      key_position = answer_several(key_position)
    else
      if which > 0 then
        cost = next_number()
      else
        which = -which
      end
      key_position = key_position + 1
      guarded(answer_one, KEYS[key_position], limits[which], cost)
    end
  end
  return reply
end
