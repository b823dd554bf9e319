import type {
  inferRouterInputs,
  inferRouterOutputs,
  TRPCBuiltRouter,
  TRPCMutationProcedure,
  TRPCQueryProcedure,
} from '@trpc/server';
import type { AppRouter as ServerRouter } from '../../api/trpc/router.ts';

// The procedures that the pages call.

export interface StackRef {
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
}

type Outputs = inferRouterOutputs<ServerRouter>;

export type Me = Outputs['me']['get'];
export type StackItem = Outputs['stacks']['list']['items'][number];

export interface StackDetails extends StackItem {
  readonly createdAt: string;
  readonly permissions: readonly string[];
  readonly outputs: readonly { readonly name: string; readonly value: string | null; readonly isSecret: boolean }[];
  readonly git: { readonly repo: string | null; readonly branch: string | null; readonly commit: string | null } | null;
  readonly fault: { readonly kind: string; readonly message: string } | null;
  readonly frozen: { readonly note: string | null; readonly until: string | null } | null;
  readonly config: readonly { readonly key: string; readonly value: string | null; readonly isSecret: boolean }[];
}

export interface UpdateItem {
  readonly updateId: string;
  readonly version: number | null;
  readonly kind: string;
  readonly dryRun: boolean;
  readonly status: string;
  readonly result: string | null;
  readonly by: string | null;
  readonly message: string | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly changes: Readonly<Partial<Record<'create' | 'update' | 'delete' | 'replace' | 'same', number>>>;
  readonly commit: string | null;
  readonly branch: string | null;
  readonly ciUrl: string | null;
}

export interface UpdateDetails extends UpdateItem {
  readonly config: StackDetails['config'];
  readonly environment: Readonly<Record<string, string>>;
  readonly policyPacks: readonly { readonly name: string; readonly version: string }[];
  readonly baseVersion: number | null;
  readonly waited: { readonly seconds: number; readonly behind: string | null } | null;
  readonly preview: string | null;
}

export interface QueueItem extends StackRef {
  readonly updateId: string | null;
  readonly position: number;
  readonly since: string;
  readonly by: string | null;
  readonly commit: string | null;
  readonly branch: string | null;
  readonly ciUrl: string | null;
  readonly why: string | null;
}

interface Paging {
  readonly cursor?: string | null | undefined;
  readonly limit?: number | undefined;
}

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

export type StackFilter = inferRouterInputs<ServerRouter>['stacks']['list'];

type Query<Input, Output> = TRPCQueryProcedure<{ input: Input; output: Output; meta: unknown }>;
type Mutation<Input, Output> = TRPCMutationProcedure<{ input: Input; output: Output; meta: unknown }>;

/** Those of the server, and those that it does not have yet. */
export type AppRouter = TRPCBuiltRouter<
  ServerRouter['_def']['_config']['$types'],
  ServerRouter['_def']['record'] & {
    stacks: {
      get: Query<StackRef, StackDetails>;
      setTag: Mutation<StackRef & { name: string; value: string }, unknown>;
      removeTag: Mutation<StackRef & { name: string }, unknown>;
    };
    updates: {
      list: Query<StackRef & Paging & { previews?: boolean | undefined }, Page<UpdateItem>>;
      get: Query<StackRef & { version?: number | undefined; updateId?: string | undefined }, UpdateDetails>;
      events: Query<
        StackRef & Paging & { updateId: string; newestFirst?: boolean; urn?: string; type?: string },
        Page<unknown>
      >;
      cancel: Mutation<StackRef & { updateId: string; reason?: string }, unknown>;
      drain: Mutation<StackRef & { updateId: string; reason?: string }, unknown>;
    };
    queue: { list: Query<Partial<StackRef>, readonly QueueItem[]> };
  }
>;
