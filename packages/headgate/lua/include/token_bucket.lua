-- Token bucket; see engine/token-bucket.ts.
-- A hash: `tokens` left of `capacity` when last written, `lastRefill` in microseconds. What is missing is what counts,
-- so a changed capacity keeps what was used.
local bucket = {}

local MICRO = 1000000

-- Tokens as Headgate writes them, whole or with six decimals, or nil.
local function decimal(text)
  return #text <= 17 and string.find(text, '^%d+%.?%d*$') and tonumber(text) or nil
end

function bucket.load(key, limit, now)
  local fields, failure = hash_fields(key, 'tokens', 'lastRefill', 'capacity')
  if failure then
    return nil, failure
  end
  local state = { key = key, stored_missing = 0, last = 0, missing = 0, at = now }
  if not fields[1] then
    return state
  end
  local tokens, last, capacity = decimal(fields[1]), whole(fields[2]), whole(fields[3])
  if not (tokens and last and capacity) then
    return nil, BAD_STATE
  end
  if last - now > (limit.limit - 1) * MICRO / limit.refill_per_second then
    -- From before the clock stepped back: the wait would be longer than a whole bucket takes to fill.
    return state
  end
  local missing = capacity * MICRO - math.floor(tokens * MICRO + 0.5)
  state.stored_missing = math.min(missing, limit.limit * MICRO)
  state.last = last
  state.at = math.max(now, last)
  state.missing = math.max(0, state.stored_missing - math.floor((state.at - last) * limit.refill_per_second))
  return state
end

-- Least whole number of microseconds in which `micro` micro-tokens are refilled.
local function refill_us(refill_per_second, micro)
  local elapsed = math.ceil(micro / refill_per_second)
  while math.floor(elapsed * refill_per_second) < micro do
    elapsed = elapsed + 1
  end
  while elapsed > 0 and math.floor((elapsed - 1) * refill_per_second) >= micro do
    elapsed = elapsed - 1
  end
  return elapsed
end

function bucket.wait_us(limit, state, cost, now)
  if cost > limit.limit then
    return NEVER
  end
  local room = (limit.limit - cost) * MICRO
  if state.missing <= room then
    return 0
  end
  return state.last + refill_us(limit.refill_per_second, state.stored_missing - room) - now
end

function bucket.remaining(limit, state)
  return limit.limit - math.ceil(state.missing / MICRO)
end

function bucket.reset_after_us(limit, state, now)
  if state.missing == 0 then
    return 0
  end
  return state.last + refill_us(limit.refill_per_second, state.stored_missing) - now
end

local function save_bucket(limit, state, missing, now)
  state.missing, state.stored_missing, state.last = missing, missing, state.at
  local left = limit.limit * MICRO - missing
  local tokens = left % MICRO == 0 and string.format('%d', left / MICRO) or string.format('%.6f', left / MICRO)
  redis.call('HSET', state.key, 'tokens', tokens, 'lastRefill', state.at, 'capacity', limit.limit)
  local fill_seconds = math.ceil(limit.limit / limit.refill_per_second)
  expire_after(state.key, math.max(0, state.at - now) + 2 * fill_seconds * MICRO)
end

function bucket.charge(limit, state, cost, now)
  save_bucket(limit, state, state.missing + cost * MICRO, now)
  return state.at
end

function bucket.refund(limit, state, units, _, now)
  local back = math.min(units * MICRO, state.missing)
  if back > 0 then
    save_bucket(limit, state, state.missing - back, now)
  end
  return math.ceil(back / MICRO)
end
