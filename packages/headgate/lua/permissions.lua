-- permissions.lua: name the commands that this user may not run, of those that the scripts need.
-- KEYS[1]    a key as limits have them; it need not exist
-- ARGV       commands
-- returns    those that are not allowed; none where the server (below Redis 7) cannot tell
local missing = {}
if redis.acl_check_cmd then
  for _, command in ipairs(ARGV) do
    if not redis.acl_check_cmd(command, KEYS[1], KEYS[1]) then
      missing[#missing + 1] = command
    end
  end
end
return missing
