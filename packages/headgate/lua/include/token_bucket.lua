-- Token bucket; see engine/token-bucket.ts.
-- A hash: `tokens` left of `capacity` when last written, `lastRefill` in microseconds. What is missing is what counts,
-- so a changed capacity keeps what was used.
local function make_bucket()
  local bucket = {}

  local MICRO = 1000000

  -- Tokens as Headgate writes them, whole or with six decimals, or nil.
  local function decimal(text)
    return #text <= 17 and string.find(text, '^%d+%.?%d*$') and tonumber(text) or nil
  end

  function bucket.load(key, limit)
    local fields = redis.pcall('HMGET', key, 'tokens', 'lastRefill', 'capacity')
    local missing, stored_missing, last, at, is_larger = 0, 0, 0, now, false
    if not fields[1] then
      local failure = failure_of(key, fields)
      if failure then
        return nil, failure
      end
    else
      local tokens, written = decimal(fields[1]), whole(fields[2])
      local capacity = fields[3] == limit.limit_text and limit.limit or whole(fields[3])
      if not (tokens and written and capacity) then
        return nil, BAD_STATE
      end
      -- From before the clock stepped back when the wait would be longer than a whole bucket takes to fill.
      if written - now <= (limit.limit - 1) * MICRO / limit.refill_per_second then
        last, at = written, written > now and written or now
        stored_missing = capacity * MICRO - math.floor(tokens * MICRO + 0.5)
        is_larger = stored_missing > limit.limit * MICRO
        if is_larger then
          stored_missing = limit.limit * MICRO
        end
        missing = stored_missing - math.floor((at - last) * limit.refill_per_second)
        missing = missing > 0 and missing or 0
      end
    end
    return {
      key = key,
      missing = missing,
      stored_missing = stored_missing,
      last = last,
      at = at,
      capacity = fields[3],
      is_larger = is_larger,
    }
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

  function bucket.wait_us(limit, state, cost)
    local room = (limit.limit - cost) * MICRO
    if state.missing <= room then
      return 0
    end
    if room < 0 then
      return NEVER
    end
    return state.last + refill_us(limit.refill_per_second, state.stored_missing - room) - now
  end

  -- Units left, and the time until the bucket is full again.
  function bucket.tell(limit, state)
    if state.missing == 0 then
      return limit.limit, 0
    end
    local full_us = state.last + refill_us(limit.refill_per_second, state.stored_missing)
    return limit.limit - math.ceil(state.missing / MICRO), full_us - now
  end

  -- As `tokens` is read: whole, or with six decimals.
  local function tokens_of(micro)
    local whole_tokens = math.floor(micro / MICRO)
    local rest = micro - whole_tokens * MICRO
    return rest == 0 and text_of(whole_tokens) or string.format('%d.%06d', whole_tokens, rest)
  end

  local function save(limit, state, missing)
    local key, at = state.key, state.at
    local at_text = at == now and now_text or text_of(at)
    state.missing, state.stored_missing, state.last = missing, missing, at
    if state.capacity == limit.limit_text then
      redis.call('HSET', key, 'tokens', tokens_of(limit.limit * MICRO - missing), 'lastRefill', at_text)
    else
      local tokens = tokens_of(limit.limit * MICRO - missing)
      redis.call('HSET', key, 'tokens', tokens, 'lastRefill', at_text, 'capacity', limit.limit_text)
      state.capacity = limit.limit_text
    end
    limit.keep_us = limit.keep_us or 2 * MICRO * math.ceil(limit.limit / limit.refill_per_second)
    expire_after(key, at - now + limit.keep_us)
  end

  function bucket.charge(limit, state, cost)
    save(limit, state, state.missing + cost * MICRO)
    return state.at
  end

  function bucket.refund(limit, state, units, _, held_since)
    if state.is_larger then
      return 0
    end
    local refilled = math.max(0, now - held_since) * limit.refill_per_second
    local back = math.min(math.max(0, units - math.ceil(refilled / MICRO)) * MICRO, state.missing)
    if back > 0 then
      save(limit, state, state.missing - back)
    end
    return math.ceil(back / MICRO)
  end

  return bucket
end
