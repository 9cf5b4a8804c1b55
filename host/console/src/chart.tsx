// A line over time, with releases as marks.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

import { moment, number, seconds } from "./format";

export interface Mark {
  /** Seconds since 1970. */
  at: number;
  text: string;
}

export interface Line {
  name: string;
  color: string;
  values: (number | null)[];
}

const HEIGHT = 160;

export function Chart(props: {
  label: string;
  unit: "number" | "seconds";
  times: number[];
  lines: Line[];
  marks: Mark[];
}) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const data = (): uPlot.AlignedData => [latest.current.times, ...latest.current.lines.map((line) => line.values)];

  useEffect(() => {
    const element = place.current!;
    const shown = (value: number | null) => (props.unit === "seconds" ? seconds(value) : number(value));
    const ink = () => getComputedStyle(element).color;
    const axis = { stroke: ink, grid: { stroke: "#8884", width: 1 }, ticks: { show: false } };
    chart.current = new uPlot(
      {
        width: element.clientWidth || 300,
        height: HEIGHT,
        legend: { live: false },
        cursor: { show: false },
        scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [{ ...axis, values: (_, ticks) => ticks.map((at) => moment(at * 1000)) }, { ...axis, size: 64, values: (_, ticks) => ticks.map(shown) }],
        series: [
          {},
          ...props.lines.map(({ name, color }) => ({ label: name, stroke: color, width: 2, points: { show: false } })),
        ],
        hooks: { draw: [(drawn) => drawMarks(drawn, latest.current.marks, ink())] },
      },
      data(),
      element,
    );
    const watch = new ResizeObserver(() => {
      chart.current?.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    watch.observe(element);
    return () => {
      watch.disconnect();
      chart.current?.destroy();
    };
  }, []);
  useEffect(() => chart.current?.setData(data()), [props.times, props.lines, props.marks]);
  return <div class="chart" role="img" aria-label={props.label} ref={place} />;
}

function drawMarks(chart: uPlot, marks: Mark[], ink: string): void {
  const { ctx, bbox } = chart;
  const { min = 0, max = 0 } = chart.scales.x;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = ink;
  ctx.setLineDash([4, 4]);
  ctx.textAlign = "left";
  ctx.font = `${11 * devicePixelRatio}px sans-serif`;
  const seen = marks.filter(({ at }) => at >= min! && at <= max!);
  for (const [index, { at, text }] of seen.entries()) {
    const x = chart.valToPos(at, "x", true);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    // Texts of marks that are close stand below each other.
    ctx.fillText(text, x + 3, bbox.top + 11 * (1 + (index % 4)) * devicePixelRatio);
  }
  ctx.restore();
}
