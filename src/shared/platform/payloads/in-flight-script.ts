import { fairnessRules } from './budget-sums.ts';

/**
 * The rules of `in-flight-rules.ts` and `budget-sums.ts` in Lua, with the same names: Redis decides for all processes in one step, and a
 * server without Redis runs no Lua. The numbers are shared, and a differential contract test compares both on random budgets. `budget` is
 * `{capacity, complete, arriving}`: bytes of the complete bodies by fairness key, and the arriving bodies, oldest first. In a body,
 * `blocked` is 0 if it is not waiting, and a `claim` or `limit` of -1 means none. Two names differ because Redis stores them: `share` is
 * the fairness key, and `leaves` is `evicted`.
 */
export const inFlightScript = `
local maxRatioToFree, maxKeys, maxEvictions = ${fairnessRules.maxRatioToFree}, ${fairnessRules.maxKeys}, ${fairnessRules.maxEvictions}

local function fullSize(budget, body) return math.max(body.held, math.min(body.claim, budget.capacity)) end

local function restOf(budget, body, bytes)
  return math.max(math.min(math.max(body.claim, 0), budget.capacity) - body.held - bytes, 0)
end

local function needOf(budget, body, bytes)
  if body.held > 0 then return bytes end
  return math.min(math.max(body.claim, bytes), budget.capacity)
end

local function fairShare(budget)
  local shares, count = {}, 0
  local function add(share)
    if not shares[share] then
      shares[share] = true
      count = count + 1
    end
  end
  for share in pairs(budget.complete) do add(share) end
  for _, each in ipairs(budget.arriving) do add(each.share) end
  return budget.capacity / math.min(count, maxKeys)
end

local function sumUp(budget, excluded)
  local sums = { budget = budget, excluded = excluded, holding = {}, used = {}, claimed = {}, total = 0 }
  local used, claimed, holding = sums.used, sums.claimed, sums.holding
  for share, bytes in pairs(budget.complete) do
    used[share] = bytes
    claimed[share] = bytes
    sums.total = sums.total + bytes
  end
  for _, each in ipairs(budget.arriving) do
    if each.held > 0 and not excluded[each] then
      holding[#holding + 1] = each
      used[each.share] = (used[each.share] or 0) + each.held
      claimed[each.share] = (claimed[each.share] or 0) + fullSize(budget, each)
      sums.total = sums.total + each.held
    end
  end
  return sums
end

local function usedBy(sums, body) return sums.used[body.share] or 0 end

local function claimedBy(sums, body)
  local claimed = sums.claimed[body.share] or 0
  if body.held > 0 then return claimed - fullSize(sums.budget, body) end
  return claimed
end

local function claimedBefore(sums, body)
  local claimed = sums.budget.complete[body.share] or 0
  for _, each in ipairs(sums.holding) do
    if each == body then break end
    if each.share == body.share then claimed = claimed + fullSize(sums.budget, each) end
  end
  return claimed
end

local function isOverRatio(sums, body, bytes)
  local claimed = claimedBy(sums, body)
  if claimed == 0 then return false end
  claimed = claimed + needOf(sums.budget, body, bytes)
  return claimed > maxRatioToFree * (sums.budget.capacity - sums.total + usedBy(sums, body) - claimed)
end

local function isOverLimit(sums, body, bytes)
  if body.limit < 0 or (body.held > 0 and body.claim >= 0) then return false end
  local used = body.held > 0 and claimedBefore(sums, body) or claimedBy(sums, body)
  return used > 0 and used + body.held + needOf(sums.budget, body, bytes) > body.limit
end

local function waitsForOwnKey(sums, body)
  return body.held == 0 and (isOverRatio(sums, body, 1) or isOverLimit(sums, body, 1))
end

local function oldest(sums)
  for _, each in ipairs(sums.budget.arriving) do
    if not sums.excluded[each] and not waitsForOwnKey(sums, each) then return each end
  end
end

local function canAllComplete(sums, body, bytes)
  local after, free = {}, sums.budget.capacity - bytes
  for _, each in ipairs(sums.holding) do
    free = free - each.held
    if each ~= body then after[#after + 1] = { held = each.held, need = restOf(sums.budget, each, 0) } end
  end
  local held = body.held + bytes
  if held > 0 then after[#after + 1] = { held = held, need = restOf(sums.budget, body, bytes) } end
  table.sort(after, function(one, other) return one.need < other.need end)
  for _, each in ipairs(after) do
    if each.need > free then return false end
    free = free + each.held
  end
  return true
end

local function mayAcquire(sums, body, bytes)
  local capacity = sums.budget.capacity
  local others = sums.total - body.held
  if others == 0 then return true end
  if others + body.held + bytes > capacity then return false end
  if isOverLimit(sums, body, bytes) then return false end
  if body.held == 0 then
    if isOverRatio(sums, body, bytes) then return false end
    local first = oldest(sums)
    if first and first ~= body and first.blocked > 0 then return false end
    if others + needOf(sums.budget, body, bytes) > capacity then return false end
  end
  return canAllComplete(sums, body, bytes)
end

local function mayWait(sums, body, bytes)
  if isOverLimit(sums, body, bytes) then return true end
  if claimedBy(sums, body) > usedBy(sums, body) then return true end
  local part = fairShare(sums.budget)
  if usedBy(sums, body) + needOf(sums.budget, body, bytes) > part then return false end
  for _, each in ipairs(sums.holding) do
    if each ~= body and (each.stalled or each.leaves) then return true end
  end
  for share, bytesUsed in pairs(sums.used) do
    if share ~= body.share and bytesUsed > part then return true end
  end
  return false
end

local function newestOf(bodies, accepts)
  local yielding, other
  for _, each in ipairs(bodies) do
    if accepts(each) then
      if each.yields then yielding = each else other = each end
    end
  end
  return yielding or other
end

local function newestAboveShare(sums, part)
  local oldestBody, maxUsed = sums.budget.arriving[1], -1
  local function isAbove(each) return usedBy(sums, each) > part and (each ~= oldestBody or each.claim < 0) end
  for _, each in ipairs(sums.holding) do
    if isAbove(each) then maxUsed = math.max(maxUsed, usedBy(sums, each)) end
  end
  return newestOf(sums.holding, function(each) return isAbove(each) and usedBy(sums, each) == maxUsed end)
end

local function nextEviction(sums, body, bytes, waited, withYielding, withOthers)
  local function ifDue(found)
    if found and waited >= (found.yields and withYielding or withOthers) then return found end
  end

  local stalled
  for _, each in ipairs(sums.holding) do
    if each ~= body and each.stalled and (not stalled or each.held >= stalled.held) then stalled = each end
  end
  if stalled then return stalled end

  local arriving, part = sums.budget.arriving, fairShare(sums.budget)
  if usedBy(sums, body) + needOf(sums.budget, body, bytes) <= part then
    local found = ifDue(newestAboveShare(sums, part))
    if found then return found end
  end
  if body == arriving[1] then return ifDue(newestOf(sums.holding, function(each) return each ~= body end)) end
  if body.yields then return end
  local hasPriority = body.held > 0
  if not hasPriority then
    for _, each in ipairs(arriving) do
      if not each.yields then
        hasPriority = each == body
        break
      end
    end
  end
  if hasPriority then return ifDue(newestOf(sums.holding, function(each) return each.yields end)) end
end

local function chooseEvictions(budget, body, bytes, now, withYielding, withOthers)
  if body.blocked == 0 then return {} end
  local excluded, chosen = {}, {}
  for _, each in ipairs(budget.arriving) do
    if each.leaves and each ~= body then excluded[each] = true end
  end
  local sums = sumUp(budget, excluded)
  if mayAcquire(sums, body, bytes) then return {} end
  while #chosen < maxEvictions do
    local found = nextEviction(sums, body, bytes, now - body.blocked, withYielding, withOthers)
    if not found then return {} end
    excluded[found] = true
    chosen[#chosen + 1] = found
    sums = sumUp(budget, excluded)
    if mayAcquire(sums, body, bytes) then return chosen end
  end
  return chosen
end
`;
