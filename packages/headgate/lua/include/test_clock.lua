-- A test's clock stands still while the server's expiry runs on. So keys are kept for longer; and a key whose end is part of
-- its state ends far in the future, by so much that its end by the test's clock can be told.
now, grace_ms, shift_ms = clock + 0, 600000, 4398046511104
call = function(command, key, ...)
  if command == 'GET' then
    local ends_ms = redis.call('PEXPIRETIME', key)
    if ends_ms >= 0 and (ends_ms - shift_ms) * 1000 <= now then
      return false
    end
  end
  return redis.call(command, key, ...)
end
