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
type Inputs = inferRouterInputs<AppRouter>;

export type Me = Outputs['me']['get'];
export type StackItem = Outputs['stacks']['list']['items'][number];
export type StackFilter = Inputs['stacks']['list'];
export type StackDetails = Outputs['stacks']['get'];
export type UpdateItem = Outputs['updates']['list']['items'][number];
export type UpdateDetails = Outputs['updates']['get'];
export type SecretPlace = Inputs['secrets']['reveal']['place'];
export type FoundResource = Outputs['search']['list']['items'][number];
export type SearchCounts = Outputs['search']['count'];
export type SearchField = Inputs['search']['count']['by'];
export type ReferenceNode = Outputs['references']['graph']['nodes'][number];
export type QueueItem = Outputs['queue']['list']['items'][number];
export type ResourceItem = Outputs['resources']['list']['items'][number];
export type VersionItem = Outputs['versions']['list']['items'][number];
export type VersionDifference = Outputs['versions']['diff']['items'][number];
