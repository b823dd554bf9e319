import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { Waypoints } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { ReferenceGraph, ReferenceNode } from '../../platform/app/procedure-types.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { lazyPart } from '../../platform/ui/chunks.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import type { GraphData } from '../../platform/ui/graph/graph-data.ts';
import { Page } from '../../platform/ui/page.tsx';
import { Segments } from '../../platform/ui/segments.tsx';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { Table } from '../../platform/ui/table.tsx';
import { referencesTexts } from '../texts.tsx';
import styles from './references.module.css';
import { StackName } from './stack-name.tsx';

const FlowGraph = lazyPart(
  async () => (await import('../../platform/ui/graph/flow-graph.tsx')).FlowGraph,
  <Skeleton width="60%" />,
);

/** If there are more stacks, they are shown by project. */
const maxAlone = 40;

type References = Pick<ReferenceGraph, 'nodes' | 'edges'>;

interface Row {
  readonly name: string;
  readonly node: ReferenceNode;
  readonly reads: readonly ReferenceNode[];
  readonly readBy: readonly ReferenceNode[];
}

/** The stacks read each other's outputs. */
export function ReferencesPage() {
  const { organization } = useParams({ from: '/$organization/~/references' });
  const query = useQuery(trpc.references.graph.queryOptions({ organization }));
  const problem = useProblem(query);
  const navigate = useNavigate();
  // A graph is not readable on a phone or with a screen reader.
  const [shape, setShape] = useState<'graph' | 'list'>(() =>
    matchMedia('(width < 800px)').matches ? 'list' : 'graph',
  );
  useEffect(() => {
    document.title = referencesTexts.documentTitle(organization);
  }, [organization]);
  const rows = useMemo(() => rowsOf(query.data?.nodes ?? [], query.data?.edges ?? []), [query.data]);
  const data = useMemo(() => query.data && readStacks(query.data, organization), [query.data, organization]);
  const open = (thing: number): void => {
    const node = query.data?.nodes[thing];
    if (node?.isReadable) {
      const { organization: of, project, stack } = node;
      void navigate({ to: '/$organization/$project/$stack', params: { organization: of, project, stack } });
    }
  };
  return (
    <Page
      title={referencesTexts.title}
      lead={referencesTexts.lead}
      actions={
        <Segments
          label={referencesTexts.view}
          value={shape}
          onChange={setShape}
          options={[
            { value: 'graph', label: referencesTexts.graph },
            { value: 'list', label: referencesTexts.list },
          ]}
        />
      }
    >
      {problem ? (
        <Problem {...problem} />
      ) : query.data?.nodes.length === 0 ? (
        <Empty title={referencesTexts.noStackReadsAnother} icon={<Waypoints size={20} />}>
          <p>{referencesTexts.emptyHint}</p>
        </Empty>
      ) : shape === 'graph' ? (
        <FlowGraph
          label={referencesTexts.graphLabel}
          data={data}
          chosen={null}
          onOpen={open}
          caption={referencesTexts.caption(query.data?.isCut)}
        />
      ) : (
        <>
          <Table
            label={referencesTexts.stackReferences}
            items={query.data && rows}
            keyOf={({ name }) => name}
            empty={null}
            columns={[
              {
                name: referencesTexts.stack,
                isTitle: true,
                cell: ({ node }) => <StackName node={node} within={organization} />,
              },
              { name: referencesTexts.reads, cell: ({ reads }) => <Names nodes={reads} within={organization} /> },
              { name: referencesTexts.readBy, cell: ({ readBy }) => <Names nodes={readBy} within={organization} /> },
            ]}
          />
          {query.data?.isCut ? <p className={styles['note']}>{referencesTexts.cut}</p> : null}
        </>
      )}
      <p className={styles['note']}>
        {referencesTexts.ruleNote(
          <Link to="/$organization/~/rules" params={{ organization }}>
            {referencesTexts.rules}
          </Link>,
        )}
      </p>
    </Page>
  );
}

function Names({ nodes, within }: { readonly nodes: readonly ReferenceNode[]; readonly within: string }) {
  if (nodes.length === 0) return <span className={styles['none']}>–</span>;
  return (
    <ul className={styles['names']}>
      {nodes.map((node) => (
        <li key={nameOf(node)}>
          <StackName node={node} within={within} />
        </li>
      ))}
    </ul>
  );
}

function nameOf({ organization, project, stack }: ReferenceNode): string {
  return `${organization}/${project}/${stack}`;
}

/** The stacks of larger graphs belong to their projects. */
function readStacks({ edges, nodes }: References, organization: string): GraphData {
  const indexes = new Map(nodes.map((node, at) => [nameOf(node), at]));
  const names = nodes.map(({ project, stack }) => `${project}/${stack}`);
  const kinds = nodes.map(({ isReadable, organization: of }) =>
    of === organization ? (isReadable ? '' : referencesTexts.notReadable) : of,
  );
  const parents = nodes.map(() => -1);
  const faint = nodes.map(({ isReadable }) => !isReadable);
  const holders = nodes.map(() => false);
  const needs: number[][] = nodes.map(() => []);
  for (const { from, to } of edges) {
    const consumer = indexes.get(from);
    const read = indexes.get(to);
    if (consumer !== undefined && read !== undefined) needs[consumer]?.push(read);
  }
  if (nodes.length > maxAlone) {
    const projects = new Map<string, number>();
    for (const [at, { organization: of, project }] of nodes.entries()) {
      const name = of === organization ? project : `${of}/${project}`;
      const index = projects.get(name) ?? names.length;
      if (index === names.length) {
        projects.set(name, index);
        names.push(name);
        kinds.push('project');
        parents.push(-1);
        faint.push(false);
        needs.push([]);
        holders.push(true);
      }
      parents[at] = index;
    }
  }
  return { names, kinds, kindOf: kinds.map((_, at) => at), parents, needs, holders, faint };
}

function rowsOf(nodes: readonly ReferenceNode[], edges: readonly { from: string; to: string }[]): Row[] {
  const known = new Map(nodes.map((node) => [nameOf(node), node]));
  const ends = (names: readonly string[]) => names.flatMap((name) => known.get(name) ?? []);
  return [...known]
    .map(([name, node]) => ({
      name,
      node,
      reads: ends(edges.filter(({ from }) => from === name).map(({ to }) => to)),
      readBy: ends(edges.filter(({ to }) => to === name).map(({ from }) => from)),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
