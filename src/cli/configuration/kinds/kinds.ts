import { issuerKind } from './issuer-kind.ts';
import type { Kind, KindName } from './kind.ts';
import { quotaKind, userKind } from './operator-kinds.ts';
import { memberKind, organizationKind, roleKind } from './people-kinds.ts';
import { policyGroupKind } from './policy-group-kind.ts';
import { retentionRuleKind, updateRuleKind } from './rule-kinds.ts';
import { grantKind, teamKind } from './team-kinds.ts';
import { stackWebhookKind, webhookKind } from './webhook-kind.ts';

export const kinds: Readonly<Record<KindName, Kind>> = {
  Organization: organizationKind,
  Quota: quotaKind,
  User: userKind,
  Member: memberKind,
  Role: roleKind,
  Team: teamKind,
  Issuer: issuerKind,
  Grant: grantKind,
  UpdateRule: updateRuleKind,
  RetentionRule: retentionRuleKind,
  PolicyGroup: policyGroupKind,
  Webhook: webhookKind,
  StackWebhook: stackWebhookKind,
};
