import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { StackRef } from '../../platform/app/contract.ts';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import { shortType } from '../../platform/app/resource-name.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { FlowGraph } from '../../platform/ui/flow-graph.tsx';

const depth = 2;

/** The dependency graph of a small stack, or of one resource's neighbourhood. */
export default function ResourceGraph({
  chosen,
  onOpen,
  stack,
}: {
  readonly stack: StackRef;
  readonly chosen: string | null;
  readonly onOpen: (urn: string) => void;
}) {
  const query = useQuery(
    trpc.resources.graph.queryOptions({ ...stack, urn: chosen, depth }, { placeholderData: (before) => before }),
  );
  const nodes = useMemo(
    () => query.data?.nodes.map(({ name, type, urn }) => ({ id: urn, name, detail: shortType(type) })),
    [query.data],
  );
  const edges = useMemo(
    () => query.data?.edges.map(({ from, kind, to }) => ({ from, to, isDotted: kind === 'parent' })) ?? [],
    [query.data],
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  return (
    <FlowGraph
      label="Graph of resources"
      nodes={nodes}
      edges={edges}
      chosen={chosen}
      onOpen={onOpen}
      caption={
        <>
          Dotted lines lead to parents, other lines to dependencies.
          {query.data?.isCut === true ? ' Only the first 500 resources are shown.' : ''}
        </>
      }
    />
  );
}
