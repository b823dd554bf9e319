import { useState } from 'react';

/** A set of things that are on, such as opened rows, and what turns one of them on and off. */
export function useToggles<Item>(): [ReadonlySet<Item>, (item: Item) => void] {
  const [on, setOn] = useState<ReadonlySet<Item>>(new Set());
  const toggle = (item: Item): void =>
    setOn((before) => {
      const changed = new Set(before);
      if (!changed.delete(item)) changed.add(item);
      return changed;
    });
  return [on, toggle];
}
