import { Handle, type Node, type NodeProps, Position } from '@xyflow/react';
import { ChevronDown, ChevronRight } from 'lucide-react';
import { createContext, useContext } from 'react';
import styles from './flow-graph.module.css';
import type { GraphBox } from './graph-data.ts';
import { graphBoxTexts } from './texts.ts';

export interface BoxActions {
  readonly chosen: number | null;
  /** Opens a thing, expands a group, or shows more of a list. */
  readonly activate: (box: GraphBox) => void;
  readonly toggle: (box: GraphBox) => void;
}

export const BoxActionsContext = createContext<BoxActions>({ chosen: null, activate: () => {}, toggle: () => {} });

export type BoxNode = Node<{ readonly box: GraphBox } & Record<string, unknown>, 'box'>;

export function BoxOfGraph({ data: { box } }: NodeProps<BoxNode>) {
  const { activate, chosen, toggle } = useContext(BoxActionsContext);
  const isChosen = box.thing !== null && box.thing === chosen;
  const look = [styles['box'], styles[box.shape], isChosen && styles['chosen'], box.isFaint && styles['faint']];
  const text = (
    <>
      <span className={styles['name']}>{box.name}</span> <span className={styles['detail']}>{box.detail}</span>
    </>
  );
  return (
    <div className={look.filter(Boolean).join(' ')} title={box.name} data-box={box.id}>
      <Handle type="target" position={Position.Left} className={styles['handle']} />
      {box.isFaint ? (
        <span className={styles['open']}>{text}</span>
      ) : (
        <button
          type="button"
          className={styles['open']}
          aria-current={isChosen ? 'true' : undefined}
          aria-expanded={box.shape === 'group' ? (box.isExpanded ?? undefined) : undefined}
          onClick={() => activate(box)}
        >
          {text}
        </button>
      )}
      {box.isExpanded === null ? null : box.shape === 'group' ? (
        <span className={styles['sign']} aria-hidden="true">
          {box.isExpanded ? <ChevronDown size={15} /> : <ChevronRight size={15} />}
        </span>
      ) : (
        <button
          type="button"
          className={styles['toggle']}
          aria-expanded={box.isExpanded}
          aria-label={box.isExpanded ? graphBoxTexts.collapseBox(box.name) : graphBoxTexts.expandBox(box.name)}
          onClick={() => toggle(box)}
        >
          {box.isExpanded ? <ChevronDown size={15} /> : <ChevronRight size={15} />}
        </button>
      )}
      <Handle type="source" position={Position.Right} className={styles['handle']} />
    </div>
  );
}
