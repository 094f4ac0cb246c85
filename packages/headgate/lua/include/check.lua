-- One check of any algorithm, as four steps. The common algorithms are written out in place; the others are functions
-- on a state, which are made when a call first needs them.

-- @fragment check.locals
local key, limit, cost, which, units, units_text, span
local at, failure, wait_us, left, remaining, reset_us, now_text
-- @inline counter.locals
-- @inline bucket.locals
-- @inline log.locals
local kept, window_starts, window_start_texts, keep_texts, edge_texts = {}, {}, {}, {}, {}
local others, other_limits, other, other_limit, other_state

-- @fragment check.open
-- In: `check`, its number in the question. Out: its key, limit and cost.
key, limit, cost = KEYS[key_at + check], limit_of[check], cost_of[check]
local number = 4 * limit - 1
which, units, span = numbers[number], numbers[number + 1], numbers[number + 2]
units_text = ARGV[number + 1]

-- @fragment check.look
-- Out: `wait_us`, or `failure`.
if which == COUNTER then
  window_start, window_start_text = window_starts[limit], window_start_texts[limit]
  if not window_start then
    -- @inline counter.prepare
    window_starts[limit], window_start_texts[limit] = window_start, window_start_text
  end
  -- @inline counter.load
  if not failure then
    -- @inline counter.wait
  end
elseif which == BUCKET then
  full, bucket_keep_text = units * 1000000, keep_texts[limit]
  if not bucket_keep_text then
    -- @inline bucket.prepare
    keep_texts[limit] = bucket_keep_text
  end
  -- @inline bucket.load
  if not failure then
    -- @inline bucket.wait
  end
elseif which == LOG then
  edge_text, log_keep_text = edge_texts[limit], keep_texts[limit]
  if not edge_text then
    -- @inline log.prepare
    edge_texts[limit], keep_texts[limit] = edge_text, log_keep_text
  end
  -- @inline log.load
  if not failure then
    -- @inline log.wait
  end
else
  if not others then
    -- @inline clock.text
    -- @include sliding_window_buckets
    -- @include concurrency
    others, other_limits = { [BUCKETS] = make_buckets(), [CONCURRENCY] = make_concurrency() }, {}
  end
  other, other_limit = others[which], other_limits[limit]
  if not other_limit then
    other_limit = { limit = units, window_us = span, buckets = numbers[number + 3] }
    other_limits[limit] = other_limit
  end
  other_state, failure = other.load(key, other_limit)
  if other_state then
    wait_us = other.wait_us(other_limit, other_state, cost)
  end
end

-- @fragment check.keep
if which == COUNTER then
  -- @inline counter.keep
elseif which == BUCKET then
  -- @inline bucket.keep
elseif which == LOG then
  -- @inline log.keep
else
  kept[check] = { other, other_limit, other_state }
end
waits[check] = wait_us

-- @fragment check.recall
if which == COUNTER then
  window_start, window_start_text = window_starts[limit], window_start_texts[limit]
  -- @inline counter.recall
elseif which == BUCKET then
  full, bucket_keep_text = units * 1000000, keep_texts[limit]
  -- @inline bucket.recall
elseif which == LOG then
  edge_text, log_keep_text = edge_texts[limit], keep_texts[limit]
  -- @inline log.recall
else
  other, other_limit, other_state = kept[check][1], kept[check][2], kept[check][3]
end
wait_us = waits[check]

-- @fragment check.charge
-- Out: `at`, the time it counts at, and `left` where that and the time of the call say all.
left = nil
if which == COUNTER then
  -- @inline counter.charge
  -- @inline counter.left
elseif which == BUCKET then
  -- @inline bucket.charge
  -- @inline bucket.left
elseif which == LOG then
  -- @inline log.charge
  -- @inline log.left
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
else
  remaining, reset_us = other.tell(other_limit, other_state)
end
