import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { StackParams } from '../../shared/protocol/core.ts';
import { TooFastError } from '../../shared/quotas/quotas.ts';
import type { ApiServices } from '../api-services.ts';
import { stackPath, updatePath } from '../routes/paths.ts';

/** A command makes a dozen calls at once, so a burst of this many seconds' worth of calls, and at least `minBurst`, is allowed. */
const burstSeconds = 5;
const minBurst = 20;
/** All buckets are dropped when there are more than this. */
const maxBuckets = 10_000;

/** Starting an update that was created, and cancelling one: never refused. */
const unlimitedRoutes = new Set([`POST ${updatePath}`, `POST ${updatePath}/cancel`]);

/** Calls that a running update needs to save its state: not refused while one runs on the stack. */
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
 * Answers 429 when an organization makes more calls per second than it may, as counted by this process. Applies only to members'
 * calls with an API token, never to calls with a lease, because an update could lose its results.
 */
export function registerRequestRate(app: FastifyInstance, { quotas, stacks }: ApiServices): void {
  const buckets = new Map<string, Bucket>();
  app.addHook('onRequest', async (request) => {
    const organization = limitedOrganization(request);
    if (organization === null) return;
    const { requestsPerSecond: limit } = await quotas.limitsOf(organization);
    if (limit === null) return;
    const missing = takeToken(buckets, organization, limit);
    if (missing === 0 || (await isNeededByUpdate(request, stacks))) return;
    quotas.refused('requestsPerSecond');
    throw new TooFastError(organization, limit, Math.max(Math.ceil(missing / limit), 1));
  });
}

function limitedOrganization(request: FastifyRequest): string | null {
  const { config } = request.routeOptions;
  const kind = config.access?.kind;
  // Non-members must not use up the members' limit.
  if (kind === undefined || kind === 'public' || kind === 'lease' || !request.caller.belongs) return null;
  if (unlimitedRoutes.has(routeOf(request))) return null;
  return (request.params as { organization?: string }).organization ?? null;
}

function routeOf(request: FastifyRequest): string {
  return `${request.method} ${request.routeOptions.url ?? ''}`;
}

async function isNeededByUpdate(request: FastifyRequest, stacks: ApiServices['stacks']): Promise<boolean> {
  const route = routeOf(request);
  if (!neededByUpdates.some((needed) => route === needed || route.startsWith(`${needed}/log`))) return false;
  return stacks.isBusy(request.params as StackParams);
}

/** Takes a token for one call from the organization's bucket. Returns the missing part of the token, 0 if there was one. */
function takeToken(buckets: Map<string, Bucket>, organization: string, perSecond: number): number {
  const now = performance.now();
  const maxTokens = Math.max(perSecond * burstSeconds, minBurst);
  if (buckets.size > maxBuckets) buckets.clear();
  const bucket = buckets.get(organization) ?? { tokens: maxTokens, at: now };
  bucket.tokens = Math.min(bucket.tokens + ((now - bucket.at) / 1000) * perSecond, maxTokens);
  bucket.at = now;
  buckets.set(organization, bucket);
  if (bucket.tokens < 1) return 1 - bucket.tokens;
  bucket.tokens -= 1;
  return 0;
}
