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
export type CiFigures = Outputs['ci']['figures'];
export type CiRefusal = Outputs['ci']['refusals']['items'][number];
export type CiDrift = Outputs['ci']['drift']['items'][number];
export type OperatorHealth = Outputs['operator']['health'];
export type OperatorQueues = Outputs['operator']['queues'];
export type OperatorLock = Outputs['operator']['locks']['items'][number];
export type OperatorSlow = Outputs['operator']['slow']['items'][number];
export type OperatorStorage = Outputs['operator']['storage'];
export type OperatorOrganization = Outputs['operator']['organizations']['items'][number];
export type OperatorTasks = Outputs['operator']['maintenance'];
export type QueueItem = Outputs['queue']['list']['items'][number];
export type ResourceItem = Outputs['resources']['list']['items'][number];
export type VersionItem = Outputs['versions']['list']['items'][number];
export type VersionDifference = Outputs['versions']['diff']['items'][number];
