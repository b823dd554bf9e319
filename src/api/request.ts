import type { TSchema } from 'typebox';
import type { Role } from '../shared/identity/roles.ts';
import type { CachedLease } from './updates/lease-cache.ts';

/**
 * Who may call a route. `lease`: the holder of the update's lease; with `ended`, also just after the update has ended; with
 * `fenced`, the statement that commits checks the lease itself, so that a lease seen before need not be looked up.
 */
export type Access =
  | { readonly kind: 'public' }
  | { readonly kind: 'user' }
  | { readonly kind: 'organization'; readonly role: Role }
  | { readonly kind: 'lease'; readonly ended?: true; readonly fenced?: true };

/** The shapes that an answer takes: the CLI's, or those of the contract. */
export type Dialect = 'pulumi' | 'contract';

/** The owner of the API token. */
export interface Caller {
  readonly userId: string;
  readonly tokenId: string;
  readonly login: string;
  readonly displayName: string;
  readonly email: string;
  readonly siteAdmin: boolean;
  /** In the organization that the path names; null without one, or without membership. */
  readonly role: Role | null;
}

/** The lease that admitted an execution-phase call. */
export type Lease = CachedLease;

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
    /** `payload`: the route reads the raw body itself; otherwise it is parsed as JSON. */
    body?: 'payload';
    /** The body in the contract's dialect, where that asks for more than `schema.body`; of routes with a JSON body. */
    contractBody?: TSchema;
    /** No protocol version is asked for in the Accept header. */
    anyAccept?: true;
    /** For the API's description alone, where schemas that are enforced would be too much or not enough. */
    described?: {
      readonly body?: TSchema;
      readonly answers?: Readonly<Record<number, TSchema>>;
      readonly produces?: readonly string[];
      /** Statuses of refusals besides those that follow from access and body. */
      readonly refusals?: readonly number[];
    };
  }
  interface FastifyRequest {
    /** Set on routes with access `user` or `organization`. */
    caller: Caller;
    /** Set on routes with access `lease`. */
    lease: Lease;
    dialect: Dialect;
  }
}
