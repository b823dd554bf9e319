import { useState } from 'react';

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
