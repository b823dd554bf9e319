import { createAccessServices } from './access/access.module.ts';
import { createAuditServices } from './audit/audit.module.ts';
import { createDriftServices } from './drift/drift.module.ts';
import { createEmbedServices } from './embeds/embeds.module.ts';
import { createEventServices } from './events/events.module.ts';
import { createIdentityServices } from './identity/identity.module.ts';
import { createOperatorServices } from './operator/operator.module.ts';
import type { ApiContext } from './platform/api-context.ts';
import { OrganizationRates } from './platform/rates/organization-rates.ts';
import { ProofStream } from './platform/server/proof-stream.ts';
import { createPolicyServices } from './policies/policies.module.ts';
import { createSearchServices } from './search/search.module.ts';
import { createSecretServices } from './secrets/secrets.module.ts';
import { createStackServices } from './stacks/stacks.module.ts';
import { createStateServices } from './state/state.module.ts';
import { createStatisticsServices } from './statistics/statistics.module.ts';
import { createUpdateServices } from './updates/updates.module.ts';
import { createWebhookServices } from './webhooks/webhooks.module.ts';

export type ApiServices = ReturnType<typeof createServices>;

/** Called once per app. */
export function createServices(context: ApiContext) {
  const { jobQueueView = null, bodyBuffer, config, health, metrics, quotas, rates, readOnly, scans } = context;
  const updates = createUpdateServices(context);
  const reclaim = updates.updates.reclaim.bind(updates.updates);
  const state = createStateServices(context, reclaim);
  return {
    ...{ jobQueueView, bodyBuffer, config, health, metrics, quotas, rates, readOnly, scans },
    proof: new ProofStream(context),
    organizationRates: new OrganizationRates(context),
    ...createOperatorServices(context),
    ...createAuditServices(context),
    ...createAccessServices(context),
    ...createIdentityServices(context),
    ...updates,
    ...state,
    ...createStackServices(context, reclaim),
    ...createEventServices(context),
    ...createSecretServices(context, state),
    ...createSearchServices(context),
    ...createPolicyServices(context),
    ...createWebhookServices(context),
    ...createEmbedServices(context),
    ...createDriftServices(context),
    ...createStatisticsServices(context),
  };
}
