import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import type { AppRouter as ServerRouter } from '../../api/trpc/router.ts';

// What the pages know of the server: types of its procedures.

export type AppRouter = ServerRouter;

export interface StackRef {
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
}

type Outputs = inferRouterOutputs<AppRouter>;

export type Me = Outputs['me']['get'];
export type StackItem = Outputs['stacks']['list']['items'][number];
export type StackFilter = inferRouterInputs<AppRouter>['stacks']['list'];
export type StackDetails = Outputs['stacks']['get'];
export type UpdateItem = Outputs['updates']['list']['items'][number];
export type UpdateDetails = Outputs['updates']['get'];
export type QueueItem = Outputs['queue']['list']['items'][number];
export type ResourceItem = Outputs['resources']['list']['items'][number];
export type VersionItem = Outputs['versions']['list']['items'][number];
export type VersionDifference = Outputs['versions']['diff']['items'][number];
export type StackDifference = Outputs['versions']['diffStacks']['items'][number];
export type PendingSteps = Outputs['stacks']['pending'];
export type PendingStep = PendingSteps['items'][number];
export type Blame = Outputs['resources']['blame'];
