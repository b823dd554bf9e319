import { useQuery } from '@tanstack/react-query';
import { Background, Controls, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import { useMemo } from 'react';
import type { StackRef } from '../app/contract.ts';
import { Problem } from '../app/problem-pages.tsx';
import { trpc } from '../app/trpc.ts';
import { layOutGraph } from './graph-layout.ts';
import styles from './resource-graph.module.css';
import { shortType } from './resource-name.ts';

const size = { width: 220, height: 52 };
const depth = 2;

type ResourceNode = Node<{ name: string; type: string; isChosen: boolean }, 'resource'>;

const nodeTypes = { resource: ResourceBox };

/** What hangs on what: all of a small stack, or the neighbourhood of one resource. */
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
  const graph = useMemo(() => {
    if (query.data === undefined) return null;
    const placed = layOutGraph(query.data.nodes, query.data.edges, size);
    const resources = new Map(query.data.nodes.map((node) => [node.urn, node]));
    const nodes = placed.nodes.map(({ urn, x, y }): ResourceNode => {
      const { name = urn, type = '' } = resources.get(urn) ?? {};
      return { id: urn, type: 'resource', position: { x, y }, ...size, data: { name, type, isChosen: urn === chosen } };
    });
    const kinds = new Map(query.data.edges.map((edge) => [`${edge.from}\n${edge.to}`, edge.kind]));
    const edges = placed.edges.map(({ from, to }): Edge => {
      const id = `${from}\n${to}`;
      const isParent = kinds.get(id) === 'parent';
      return { id, source: to, target: from, ...(isParent ? { className: styles['parent'] ?? '' } : {}) };
    });
    return { nodes, edges };
  }, [query.data, chosen]);
  if (query.error) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <figure className={styles['graph']} aria-label="Graph of resources">
      {graph === null ? null : (
        <ReactFlow
          key={`${chosen} ${graph.nodes.length}`}
          nodes={graph.nodes}
          edges={graph.edges}
          nodeTypes={nodeTypes}
          fitView
          fitViewOptions={{ maxZoom: 1 }}
          minZoom={0.05}
          nodesDraggable={false}
          nodesConnectable={false}
          edgesFocusable={false}
          onNodeClick={(_, node) => onOpen(node.id)}
          onlyRenderVisibleElements
        >
          <Background gap={24} />
          <Controls showInteractive={false} />
        </ReactFlow>
      )}
      <figcaption className={styles['caption']}>
        Dotted lines lead to parents, others to what a resource depends on.
        {query.data?.isCut === true ? ' Only the first 500 resources are shown.' : ''}
      </figcaption>
    </figure>
  );
}

function ResourceBox({ data }: NodeProps<ResourceNode>) {
  return (
    <div className={`${styles['box']} ${data.isChosen ? styles['chosen'] : ''}`}>
      <Handle type="target" position={Position.Left} className={styles['handle']} />
      <span className={styles['name']}>{data.name}</span>
      <span className={styles['type']}>{shortType(data.type)}</span>
      <Handle type="source" position={Position.Right} className={styles['handle']} />
    </div>
  );
}
