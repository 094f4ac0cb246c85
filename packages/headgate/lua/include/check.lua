-- One check of any algorithm, as four steps. Those of rates are written out in place; the others (`@algorithm` in their
-- files) are functions on a state, which are made when a call first needs them.

-- @fragment check.locals
local key, limit, cost, which, units, units_text, span, parts
local at, failure, wait_us, left, remaining, reset_us, now_text
-- @inline counter.locals
-- @inline parts.locals
-- @inline bucket.locals
-- @inline log.locals
-- By limit: the texts and numbers that its `prepare` computed, and whether its last key was new.
local starts, start_texts, keep_texts, edge_texts, lengths, news = {}, {}, {}, {}, {}, {}
local kept, expects_new = {}, nil
local makers, made, other, other_limits, other_limit, other_state

-- @fragment check.open
-- In: `check`, its number in the question. Out: its key, limit and cost.
key, limit, cost = KEYS[key_at + check], limit_of[check], cost_of[check]
local number = 4 * limit - 1
which, units, span = numbers[number], numbers[number + 1], numbers[number + 2]

-- @fragment check.look
-- Out: `wait_us`, or `failure`.
if which == COUNTER then
  -- @inline check.counter
  expects_new = news[limit]
  -- @inline counter.load
  news[limit] = expects_new
  if not failure then
    -- @inline counter.wait
  end
elseif which == BUCKET then
  -- @inline check.bucket
  expects_new = news[limit]
  -- @inline bucket.load
  news[limit] = expects_new
  if not failure then
    -- @inline bucket.wait
  end
elseif which == LOG then
  -- @inline check.log
  -- @inline log.load
  if not failure then
    -- @inline log.wait
  end
elseif which == PARTS then
  -- @inline check.parts
  expects_new = news[limit]
  -- @inline parts.load
  news[limit] = expects_new
  if not failure then
    -- @inline parts.wait
  end
else
  if not makers then
    -- @inline clock.text
    -- @algorithms
    makers, made, other_limits = other_makers, {}, {}
  end
  other = made[which] or makers[which]()
  made[which] = other
  other_limit = other_limits[limit]
  if not other_limit then
    other_limit = { limit = units, window_us = span }
    other_limits[limit] = other_limit
  end
  other_state, failure = other.load(key, other_limit)
  if other_state then
    wait_us = other.wait_us(other_limit, other_state, cost)
  end
end

-- @fragment check.counter
-- Recalls what counter.prepare computed for this limit, or runs it.
window_start, window_start_text, last_start_text = starts[limit], start_texts[limit], edge_texts[limit]
counter_keep_text = keep_texts[limit]
if not window_start then
  -- @inline counter.prepare
  starts[limit], start_texts[limit] = window_start, window_start_text
end

-- @fragment check.parts
part, part_start, part_start_text, parts_keep_text = lengths[limit], starts[limit], start_texts[limit], keep_texts[limit]
parts = numbers[number + 3]
if not part then
  -- @inline parts.prepare
  lengths[limit], starts[limit], start_texts[limit] = part, part_start, part_start_text
end

-- @fragment check.bucket
full, bucket_keep_text, units_text = units * 1000000, keep_texts[limit], ARGV[number + 1]
if not bucket_keep_text then
  -- @inline bucket.prepare
  keep_texts[limit] = bucket_keep_text
end

-- @fragment check.log
edge_text, log_keep_text = edge_texts[limit], keep_texts[limit]
if not edge_text then
  -- @inline log.prepare
  edge_texts[limit], keep_texts[limit] = edge_text, log_keep_text
end

-- @fragment check.keep
if which == COUNTER then
  -- @inline counter.keep
elseif which == BUCKET then
  -- @inline bucket.keep
elseif which == LOG then
  -- @inline log.keep
elseif which == PARTS then
  -- @inline parts.keep
else
  kept[check] = { other_limit, other_state }
end
waits[check] = wait_us

-- @fragment check.recall
if which == COUNTER then
  -- @inline check.counter
  -- @inline counter.recall
elseif which == BUCKET then
  -- @inline check.bucket
  -- @inline bucket.recall
elseif which == LOG then
  -- @inline check.log
  -- @inline log.recall
elseif which == PARTS then
  -- @inline check.parts
  -- @inline parts.recall
else
  other, other_limit, other_state = made[which], kept[check][1], kept[check][2]
end
wait_us = waits[check]

-- @fragment check.charge
-- Out: `at`, the time it counts at, and `left` where that and the time of the call say all.
left = nil
if which == COUNTER then
  -- @inline counter.charge
  -- @inline counter.left
  keep_texts[limit], edge_texts[limit] = counter_keep_text, last_start_text
elseif which == BUCKET then
  -- @inline bucket.charge
  -- @inline bucket.left
elseif which == LOG then
  -- @inline log.charge
  -- @inline log.left
elseif which == PARTS then
  -- @inline parts.charge
  -- @inline parts.left
  keep_texts[limit] = parts_keep_text
else
  at = other.charge(other_limit, other_state, cost)
end

-- @fragment check.tell
-- Out: `remaining`, `reset_us`.
if which == COUNTER then
  -- @inline counter.tell
elseif which == BUCKET then
  -- @inline bucket.tell
elseif which == LOG then
  -- @inline log.tell
elseif which == PARTS then
  -- @inline parts.tell
else
  remaining, reset_us = other.tell(other_limit, other_state)
end
