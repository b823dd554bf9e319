import type { TRPCBuiltRouter, TRPCDefaultErrorShape, TRPCMutationProcedure, TRPCQueryProcedure } from '@trpc/server';

// The procedures that the pages call.

export interface StackRef {
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
}

export interface Me {
  readonly login: string;
  readonly displayName: string | null;
  readonly isOperator: boolean;
  readonly organizations: readonly {
    readonly name: string;
    readonly role: string;
    readonly stackCount: number | null;
  }[];
  readonly version: string;
}

export type Drift = 'drifted' | 'clean' | 'unknown';

export interface StackItem extends StackRef {
  readonly version: number;
  readonly resourceCount: number | null;
  readonly tags: Readonly<Record<string, string>>;
  readonly lastUpdate: {
    readonly version: number | null;
    readonly kind: string;
    readonly result: string;
    readonly startedAt: string | null;
    readonly endedAt: string | null;
    readonly by: string | null;
    readonly commit: string | null;
    readonly ciUrl: string | null;
  } | null;
  readonly active: {
    readonly updateId: string;
    readonly kind: string;
    readonly by: string | null;
    readonly since: string;
    readonly ciUrl: string | null;
  } | null;
  readonly waiting: number;
  readonly drift: Drift;
  readonly updatedAt: string;
}

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

export interface StackFilter {
  readonly organization?: string | undefined;
  readonly text?: string | undefined;
  readonly project?: string | undefined;
  readonly tag?: { readonly name: string; readonly value?: string | undefined } | undefined;
  readonly status?: 'running' | 'failed' | 'drifted' | 'frozen' | undefined;
}

type Query<Input, Output> = TRPCQueryProcedure<{ input: Input; output: Output; meta: unknown }>;
type Mutation<Input, Output> = TRPCMutationProcedure<{ input: Input; output: Output; meta: unknown }>;

export type AppRouter = TRPCBuiltRouter<
  { ctx: object; meta: object; errorShape: TRPCDefaultErrorShape; transformer: false },
  {
    me: { get: Query<void, Me> };
    stacks: {
      list: Query<StackFilter & Paging, Page<StackItem>>;
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
