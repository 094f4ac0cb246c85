-- The arguments by name. Positions are taken apart here, once, and nowhere else.
-- Making a function takes time in every call, and most calls need few of them: what belongs to one algorithm, or to
-- questions of several checks, is made when it is first needed.
local NEVER = math.huge
local BAD_STATE = 'HEADGATE_BAD_STATE the key holds something Headgate did not write'

-- @include exact_fraction

-- The whole number in a field, or nil when Headgate did not write it: tonumber also takes hex, spaces, inf and nan.
local function whole(text)
  return text and #text <= 16 and string.find(text, '^%d+$') and tonumber(text) or nil
end

-- A hash without our fields is a new key, or somebody else's: writing to that would expire their data.
local function failure_of(key, fields)
  if fields.err then
    return fields.err
  end
  if not fields[1] and redis.call('EXISTS', key) == 1 then
    return BAD_STATE
  end
end

-- @include sliding_window_log
-- @include sliding_window_counter
-- @include sliding_window_buckets
-- @include token_bucket

local position = 1

local function next_number()
  position = position + 1
  return tonumber(ARGV[position])
end

-- Four numbers a limit: algorithm, limit, window in microseconds or refill per second, buckets.
local function read_limits()
  local makers, made, limits = { make_log, make_counter, make_buckets, make_bucket }, {}, {}
  for index = 1, next_number() do
    local which, units, number, parts = next_number(), next_number(), next_number(), next_number()
    made[which] = made[which] or makers[which]()
    limits[index] = {
      algorithm = made[which],
      limit = units,
      limit_text = ARGV[position - 2],
      window_us = number,
      refill_per_second = number,
      refill_text = ARGV[position - 1],
      buckets = parts,
    }
  end
  return limits
end
