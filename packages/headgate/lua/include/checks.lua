-- The arguments by name. Positions are taken apart here, once, and nowhere else.
local NEVER = math.huge
local BAD_STATE = 'HEADGATE_BAD_STATE the key holds something Headgate did not write'

-- @include exact_fraction

-- The whole number in a field, or nil when Headgate did not write it: tonumber also takes hex, spaces, inf and nan.
local function whole(text)
  return text and #text <= 16 and string.find(text, '^%d+$') and tonumber(text) or nil
end

-- A hash without our fields is a new key, or somebody else's: writing to that would expire their data.
local function hash_fields(key, ...)
  local fields = redis.pcall('HMGET', key, ...)
  if fields.err then
    return nil, fields.err
  end
  if not fields[1] and redis.call('EXISTS', key) == 1 then
    return nil, BAD_STATE
  end
  return fields
end

-- @include sliding_window_log
-- @include sliding_window_counter
-- @include sliding_window_buckets
-- @include token_bucket

local ALGORITHMS = { log, counter, buckets, bucket }

local position = 1

local function next_number()
  position = position + 1
  return tonumber(ARGV[position])
end

-- Four numbers a limit: algorithm, limit, window in microseconds or refill per second, buckets.
local function read_limits()
  local limits = {}
  for index = 1, next_number() do
    local limit = { algorithm = ALGORITHMS[next_number()], limit = next_number() }
    local number = next_number()
    limit.window_us, limit.refill_per_second = number, number
    limit.buckets = next_number()
    limits[index] = limit
  end
  return limits
end

local key_position = 0

-- Two numbers a check: which limit, and the cost. Its key is the next one.
local function read_check(limits)
  key_position = key_position + 1
  return { key = KEYS[key_position], limit = limits[next_number()], cost = next_number() }
end

local function read_checks(limits)
  local checks = {}
  for index = 1, next_number() do
    checks[index] = read_check(limits)
  end
  return checks
end

-- Takes the questions of the call one after the other and returns what `answer` wrote down.
local function answer_questions(answer)
  local now = clock_us(ARGV[1])
  local limits = read_limits()
  local reply = {}
  for _ = 1, next_number() do
    local alternatives = {}
    for index = 1, next_number() do
      alternatives[index] = read_checks(limits)
    end
    answer(reply, alternatives, read_checks(limits), now)
  end
  return reply
end
