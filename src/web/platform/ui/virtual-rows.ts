import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useCallback, useEffect, useLayoutEffect, useState } from 'react';
import { createFlag } from './flag.ts';

const printing = createFlag(false);
addEventListener('beforeprint', () => printing.set(true));
addEventListener('afterprint', () => printing.set(false));

const useIsPrinting = printing.use;

/** The rows beyond the edges of the window. */
const overscan = 12;
/** Paper does not scroll: this many rows are printed, in view or not. */
export const maxPrintedRows = 1_000;

/**
 * Only rows in view are rendered. The list has `data-window-rows`, so that its rows are consecutive on paper. `items` and `keyOf` must stay
 * identical while nothing has changed: otherwise, all items are measured again at each step of scrolling.
 */
export function useVirtualRows<Item>({
  items,
  keyOf,
  list,
  rowPx,
}: {
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => string | number;
  /** The element that contains the rows. */
  readonly list: RefObject<HTMLElement | null>;
  readonly rowPx: number;
}) {
  const [top, setTop] = useState(0);
  // Content above the list changes its height as well.
  useLayoutEffect(() => {
    const now = list.current === null ? 0 : list.current.getBoundingClientRect().top + window.scrollY;
    if (Math.abs(now - top) > 1) setTop(now);
  });
  const getItemKey = useCallback(
    (at: number) => {
      const item = items[at];
      return item === undefined ? at : keyOf(item);
    },
    [items, keyOf],
  );
  const virtualizer = useWindowVirtualizer({
    ...{ count: items.length, estimateSize: () => rowPx, overscan, scrollMargin: top, getItemKey },
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height of rows changes then.
  useEffect(() => virtualizer.measure(), [rowPx, virtualizer]);
  const isPrinting = useIsPrinting();
  const inView = virtualizer.getVirtualItems().flatMap(({ index, key, start }) => {
    const item = items[index];
    return item === undefined ? [] : [{ index, key, item, offsetPx: start - top }];
  });
  const printed = isPrinting ? items.slice(0, maxPrintedRows) : [];
  return {
    rows: isPrinting ? printed.map((item, index) => ({ index, key: keyOf(item), item, offsetPx: 0 })) : inView,
    /** The last row in view. */
    lastIndex: inView.at(-1)?.index ?? 0,
    height: isPrinting ? 'auto' : virtualizer.getTotalSize(),
    measure: virtualizer.measureElement,
    scrollTo: (at: number) => virtualizer.scrollToIndex(at, { align: 'auto' }),
  };
}
