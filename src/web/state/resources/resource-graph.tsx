import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { StackRef, StackResources } from '../../platform/app/procedure-types.ts';
import { shortType } from '../../platform/app/resource-name.ts';
import { stopsUnread, trpc } from '../../platform/app/trpc.ts';
import { FlowGraph } from '../../platform/ui/graph/flow-graph.tsx';
import type { GraphData } from '../../platform/ui/graph/graph-data.ts';
import { resourceGraphTexts } from '../texts.tsx';

/** Kept only briefly, because the data of a large stack has some megabytes. */
const keptMs = 30_000;

/** The graph is collapsed by component and type. */
export default function ResourceGraph({
  chosen,
  onOpen,
  stack,
}: {
  readonly stack: StackRef;
  readonly chosen: string | null;
  readonly onOpen: (urn: string) => void;
}) {
  const query = useQuery(trpc.resources.graph.queryOptions(stack, { ...stopsUnread, gcTime: keptMs }));
  const data = useMemo(() => query.data && readResources(query.data), [query.data]);
  const thing = useMemo(
    () => (query.data === undefined || chosen === null ? -1 : indexOf(query.data, chosen)),
    [query.data, chosen],
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const open = (at: number): void => {
    if (query.data) onOpen(urnAt(query.data, at));
  };
  return (
    <FlowGraph
      label={resourceGraphTexts.label}
      data={data}
      chosen={thing < 0 ? null : thing}
      onOpen={open}
      onPick={open}
      caption={
        <>
          {resourceGraphTexts.caption}
          {query.data?.isCut === true ? ` ${resourceGraphTexts.onlyFirst(query.data.names.length)}` : ''}
        </>
      }
    />
  );
}

/** Kinds are types: the head of a URN also contains the types of the parents. */
function readResources({ headOf, heads, names, needs, parents }: StackResources): GraphData {
  const kinds = new Map<string, number>();
  const kindOfHead = heads.map((head) => {
    const kind = shortType(head.split('::').at(-2)?.split('$').at(-1) ?? '');
    const known = kinds.get(kind) ?? kinds.size;
    kinds.set(kind, known);
    return known;
  });
  return { names, kinds: [...kinds.keys()], kindOf: headOf.map((head) => kindOfHead[head] ?? 0), parents, needs };
}

function urnAt({ headOf, heads, names }: StackResources, at: number): string {
  return `${heads[headOf[at] ?? 0]}${names[at]}`;
}

function indexOf({ headOf, heads, names }: StackResources, urn: string): number {
  return names.findIndex((name, at) => urn.endsWith(name) && `${heads[headOf[at] ?? 0]}${name}` === urn);
}
