import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { StackParams } from '../../shared/protocol/core.ts';
import { TooFastError } from '../../shared/quotas/quotas.ts';
import type { ApiServices } from '../api-services.ts';
import { stackPath, updatePath } from '../routes/paths.ts';

/** A command makes a dozen calls at once: as many seconds' worth, and at least as many calls, may come together. */
const burstSeconds = 5;
const leastBurst = 20;
/** Buckets are forgotten when there are more. */
const mostBuckets = 10_000;

/** The second half of beginning an update, and its end: never refused. */
const unlimitedRoutes = new Set([`POST ${updatePath}`, `POST ${updatePath}/cancel`]);

/** What an update that runs needs to save its state: not refused while one runs on the stack. */
const neededByUpdates = [
  `GET ${stackPath}`,
  `GET ${stackPath}/export`,
  `POST ${stackPath}/encrypt`,
  `POST ${stackPath}/decrypt`,
  `POST ${stackPath}/batch-encrypt`,
  `POST ${stackPath}/batch-decrypt`,
];

interface Bucket {
  tokens: number;
  at: number;
}

/**
 * Refuses calls of an organization that come faster than it may make them, as this process sees them: 429. Only calls with an
 * API token, of members; those with a lease never, since an update could lose what it has done.
 */
export function registerRequestRate(app: FastifyInstance, { quotas, stacks }: ApiServices): void {
  const buckets = new Map<string, Bucket>();
  app.addHook('onRequest', async (request) => {
    const organization = limitedOrganization(request);
    if (organization === null) return;
    const { requestsPerSecond: limit } = await quotas.limitsOf(organization);
    if (limit === null) return;
    const missing = take(buckets, organization, limit);
    if (missing === 0 || (await isNeeded(request, stacks))) return;
    quotas.refused('requestsPerSecond');
    throw new TooFastError(organization, limit, Math.max(Math.ceil(missing / limit), 1));
  });
}

function limitedOrganization(request: FastifyRequest): string | null {
  const { config } = request.routeOptions;
  const kind = config.access?.kind;
  // Who is no member must not use up what the members may do.
  if ((kind !== 'organization' && kind !== 'user') || request.caller.role === null) return null;
  if (unlimitedRoutes.has(routeOf(request))) return null;
  return (request.params as { organization?: string }).organization ?? null;
}

function routeOf(request: FastifyRequest): string {
  return `${request.method} ${request.routeOptions.url ?? ''}`;
}

async function isNeeded(request: FastifyRequest, stacks: ApiServices['stacks']): Promise<boolean> {
  const route = routeOf(request);
  if (!neededByUpdates.some((needed) => route === needed || route.startsWith(`${needed}/log`))) return false;
  return stacks.isBusy(request.params as StackParams);
}

/** Takes a call's worth out of the organization's bucket; returns how much is missing, 0 when it was there. */
function take(buckets: Map<string, Bucket>, organization: string, perSecond: number): number {
  const now = performance.now();
  const most = Math.max(perSecond * burstSeconds, leastBurst);
  if (buckets.size > mostBuckets) buckets.clear();
  const bucket = buckets.get(organization) ?? { tokens: most, at: now };
  bucket.tokens = Math.min(bucket.tokens + ((now - bucket.at) / 1000) * perSecond, most);
  bucket.at = now;
  buckets.set(organization, bucket);
  if (bucket.tokens < 1) return 1 - bucket.tokens;
  bucket.tokens -= 1;
  return 0;
}
