import { Background, Controls, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import { type ReactNode, useEffect, useMemo, useRef } from 'react';
import styles from './flow-graph.module.css';
import { layOutGraph } from './graph-layout.ts';

const size = { width: 220, height: 52 };

export interface FlowNode {
  readonly id: string;
  readonly name: string;
  /** A second line. */
  readonly detail: string;
  /** Something that cannot be opened. */
  readonly isFaint?: boolean;
}

/** `from` needs `to`. */
export interface FlowEdge {
  readonly from: string;
  readonly to: string;
  readonly isDotted?: boolean;
}

type BoxNode = Node<FlowNode & { isChosen: boolean } & Record<string, unknown>, 'box'>;

const nodeTypes = { box: Box };
/** Replaces texts of the library: nodes cannot be moved or removed. */
const ariaTexts = { 'node.a11yDescription.default': 'Enter opens it.' };

/** A dependency graph, laid out in layers. The first 500 nodes are shown. `nodes`: undefined while they are loading. */
export function FlowGraph({
  caption,
  chosen,
  edges,
  label,
  nodes,
  onOpen,
}: {
  readonly label: string;
  readonly caption: ReactNode;
  readonly nodes: readonly FlowNode[] | undefined;
  readonly edges: readonly FlowEdge[];
  readonly chosen: string | null;
  readonly onOpen: (id: string) => void;
}) {
  const graph = useMemo(() => {
    if (nodes === undefined) return null;
    const placed = layOutGraph(nodes, edges, size);
    const known = new Map(nodes.map((node) => [node.id, node]));
    const dotted = new Set(edges.filter(({ isDotted }) => isDotted).map(({ from, to }) => `${from}\n${to}`));
    return {
      nodes: placed.nodes.map(({ id, x, y }): BoxNode => {
        const node = known.get(id) ?? { id, name: id, detail: '' };
        const said = {
          ariaRole: node.isFaint ? ('group' as const) : ('button' as const),
          ariaLabel: [node.name, node.detail].filter(Boolean).join(' '),
        };
        return { id, type: 'box', position: { x, y }, ...size, ...said, data: { ...node, isChosen: id === chosen } };
      }),
      edges: placed.edges.map(({ from, to }): Edge => {
        const id = `${from}\n${to}`;
        return { id, source: to, target: from, ...(dotted.has(id) ? { className: styles['dotted'] ?? '' } : {}) };
      }),
    };
  }, [nodes, edges, chosen]);
  const figure = useRef<HTMLElement>(null);
  const isByKey = useRef(false);
  // Another selection is a different graph with different elements.
  useEffect(() => {
    if (!isByKey.current || graph === null || chosen === null) return undefined;
    const frame = requestAnimationFrame(() => {
      if (document.activeElement !== document.body) return;
      figure.current?.querySelector<HTMLElement>(`[data-id="${CSS.escape(chosen)}"]`)?.focus({ preventScroll: true });
    });
    return () => cancelAnimationFrame(frame);
  }, [chosen, graph]);
  return (
    <figure ref={figure} className={styles['graph']} aria-label={label}>
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
          onKeyDown={(event) => {
            const id = (event.target as HTMLElement).dataset['id'];
            if ((event.key !== 'Enter' && event.key !== ' ') || id === undefined) return;
            // Space would scroll the page.
            event.preventDefault();
            isByKey.current = true;
            onOpen(id);
          }}
          ariaLabelConfig={ariaTexts}
        >
          <Background gap={24} />
          <Controls showInteractive={false} />
        </ReactFlow>
      )}
      <figcaption className={styles['caption']}>{caption}</figcaption>
    </figure>
  );
}

function Box({ data }: NodeProps<BoxNode>) {
  const look = [styles['box'], data.isChosen && styles['chosen'], data.isFaint && styles['faint']];
  return (
    <div className={look.filter(Boolean).join(' ')}>
      <Handle type="target" position={Position.Left} className={styles['handle']} />
      <span className={styles['name']}>{data.name}</span> <span className={styles['type']}>{data.detail}</span>
      <Handle type="source" position={Position.Right} className={styles['handle']} />
    </div>
  );
}
