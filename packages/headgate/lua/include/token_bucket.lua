-- Token bucket; see algorithms/token-bucket.ts.
-- A hash: `tokens` left of `capacity` when last written, `lastRefill` in microseconds. What is missing is what counts,
-- so a changed capacity keeps what was used.
-- `units` are the capacity, `span` is the refill per second; micro-tokens are counted.

-- @fragment bucket.locals
local missing, stored_missing, refilled_us, capacity_text, is_larger, full, bucket_keep_text

-- @fragment bucket.prepare
-- The same for all keys: micro-tokens of a full bucket, the time as it is written, and how long a state is kept:
-- twice the time an empty bucket takes to fill, in whole seconds.
full = units * 1000000
-- @inline clock.now_text
bucket_keep_text = format('%d', 2000 * ceil(units / span) + grace_ms)

-- @fragment bucket.load
-- In: `key`, `units_text`, `expects_new`, and what bucket.prepare worked out. Out: `at` and the locals above, or `failure`.
local fields, tokens_text, written_text
capacity_text = nil
if not expects_new or call('EXISTS', key) == 1 then
  fields = try('HMGET', key, 'tokens', 'lastRefill', 'capacity')
  tokens_text, written_text, capacity_text = fields[1], fields[2], fields[3]
end
missing, stored_missing, refilled_us, at, is_larger = 0, 0, 0, now, false
if tokens_text then
  -- Whole, or with six decimals.
  local tokens = #tokens_text <= 17 and find(tokens_text, '^%d+%.?%d*$') and tokens_text + 0
  -- As `whole` does it.
  local written = written_text and #written_text <= 16 and find(written_text, '^%d+$') and written_text + 0
  local capacity = capacity_text == units_text and units or whole(capacity_text)
  if not (tokens and written and capacity) then
    failure = BAD_STATE
  -- From before the clock stepped back when the wait would be longer than a whole bucket takes to fill.
  elseif written <= now or written - now <= (units - 1) * 1000000 / span then
    refilled_us, at = written, written > now and written or now
    local tokens_micro = tokens * 1000000 + 0.5
    stored_missing = capacity * 1000000 - (tokens_micro - tokens_micro % 1)
    if stored_missing > full then
      stored_missing, is_larger = full, true
    end
    local refilled_micro = (at - refilled_us) * span
    missing = stored_missing - (refilled_micro - refilled_micro % 1)
    if missing < 0 then
      missing = 0
    end
  end
elseif fields then
  -- @inline hash.empty
end
expects_new = not tokens_text

-- @fragment bucket.refill
-- Least whole number of microseconds, `elapsed`, in which `micro` micro-tokens are refilled.
local elapsed = ceil(micro / span)
while floor(elapsed * span) < micro do
  elapsed = elapsed + 1
end
while elapsed > 0 and floor((elapsed - 1) * span) >= micro do
  elapsed = elapsed - 1
end

-- @fragment bucket.wait
-- In: `cost` and what was loaded. Out: `wait_us`.
local room = (units - cost) * 1000000
if missing <= room then
  wait_us = 0
elseif room < 0 then
  wait_us = NEVER
else
  local micro = stored_missing - room
  -- @inline bucket.refill
  wait_us = refilled_us + elapsed - now
end

-- @fragment bucket.charge
missing = missing + cost * 1000000
-- @inline bucket.save

-- @fragment bucket.save
stored_missing, refilled_us = missing, at
local left_micro = full - missing
local part_micro = left_micro % 1000000
local tokens_text, at_text, keep_text = nil, now_text, bucket_keep_text
if part_micro == 0 then
  tokens_text = format('%d', left_micro / 1000000)
else
  tokens_text = format('%d.%06d', (left_micro - part_micro) / 1000000, part_micro)
end
if at ~= now then
  at_text = format('%d', at)
  keep_text = format('%d', bucket_keep_text + ceil((at - now) / 1000))
end
if capacity_text == units_text then
  call('HSET', key, 'tokens', tokens_text, 'lastRefill', at_text)
else
  call('HSET', key, 'tokens', tokens_text, 'lastRefill', at_text, 'capacity', units_text)
  capacity_text = units_text
end
call('PEXPIRE', key, keep_text)

-- @fragment bucket.left
left = full - missing

-- @fragment bucket.tell
-- Units left, and the time until the bucket is full again.
remaining, reset_us = units, 0
if missing > 0 then
  local micro = stored_missing
  -- @inline bucket.refill
  remaining, reset_us = units - ceil(missing / 1000000), refilled_us + elapsed - now
end

-- @fragment bucket.keep
kept[check] = { missing, stored_missing, refilled_us, capacity_text, at }

-- @fragment bucket.recall
local state = kept[check]
missing, stored_missing, refilled_us, capacity_text, at = state[1], state[2], state[3], state[4], state[5]

-- @fragment bucket.functions
local function make_bucket()
  local bucket = {}

  function bucket.load(key, limit)
    local units, units_text, span, at, failure = limit.limit, limit.limit_text, limit.refill_per_second, nil, nil
    local now_text, expects_new
    -- @inline bucket.locals
    -- @inline bucket.prepare
    -- @inline bucket.load
    if failure then
      return nil, failure
    end
    limit.keep_us = 2000000 * ceil(units / span)
    return { key = key, missing = missing, at = at, capacity_text = capacity_text, is_larger = is_larger }
  end

  -- A debt is a bucket that begins to fill later; see algorithms/token-bucket.ts.
  function bucket.charge_beyond(limit, state, more)
    local key, at, capacity_text, missing = state.key, state.at, state.capacity_text, state.missing + more * 1000000
    local units, units_text, span, stored_missing, refilled_us = limit.limit, limit.limit_text, limit.refill_per_second
    local full, now_text, bucket_keep_text
    if units == 0 then
      return
    end
    -- @inline bucket.prepare
    if missing > units * 1000000 then
      local micro = missing - units * 1000000
      -- @inline bucket.refill
      at = now + math.min(floor((units - 1) * 1000000 / span), at - now + elapsed)
      missing = units * 1000000
    end
    -- @inline bucket.save
  end

  function bucket.refund(limit, state, units, charged_at, held_since)
    if state.is_larger or (charged_at and now - charged_at >= limit.keep_us) then
      return 0
    end
    local refilled = math.max(0, now - held_since) * limit.refill_per_second
    local back = math.min(math.max(0, units - ceil(refilled / 1000000)) * 1000000, state.missing)
    if back > 0 then
      local key, at, capacity_text, missing = state.key, state.at, state.capacity_text, state.missing - back
      local units, units_text, span, stored_missing, refilled_us = limit.limit, limit.limit_text, limit.refill_per_second
      local full, now_text, bucket_keep_text
      -- @inline bucket.prepare
      -- @inline bucket.save
    end
    return ceil(back / 1000000)
  end

  return bucket
end
