extension GuardrailProbe {
    /// Trained by Tests/Tools/train_probe.py on the prompts of Benchmarks/Answers/development and everyday.jsonl, by several authors (without
    /// the third and the fourth file), a third of them unsafe. Thresholds are those of 2 % false alarms in cross-validation.
    static let all = [
        // Qwen2.5 Coder 1.5B Instruct, Q4_K_M
        GuardrailProbe(
            fingerprint: "a8af0622d2358987", layers: [18], scale: 0.00199665, bias: -10.644, threshold: 0.884,
            weights: """
                3wITzfcEBe3vuvzOCebhF+X56cEnDvv6FQMGFi7/6fUX6xUWDvXwKRkb6PkSEvoKCsj8BgPcGhn5++QF7wMNGycDTaHM6DEVEub5ShgI7/7x8R\
                0XEegKINr1Lfo4FQPnCwwC9CT92AL669Ur4/L1D+LY+e8l4wYV3h3hoyXsGuAI+hkp4QgPJwobAhEN9zsE5fXnVtAK5xEOH/bj5s/y9CAI+wAp\
                9fAV9vnfFOb+It6/7PT6EuoI+toJ5ec1BRf7CiXzIujlCf/iFuoQBvPR8Qn4FQIYHdkfEBMHBv0BEgTy4BT2Iw38EuwL6kgCERD72/3nBRYN//\
                j9Cxo8Cdb0tSD28iMWAwfECunyEBoA+hzL1wtDHATT3dn7+ycbNKbb3Q8iCuMhKQbUIxAP7yUJ+hHB9tX4EhryDtUA7s81BNvq8gL9yRbPDvT8\
                0dP/9OcoGxbI0eAU2wPyE78YxA76JPTONvseHSkIBS77FhAgC+r//vPmCPsCEd3w+wrTJhAB7g4aHNMT/wX7IE4dASMpJhdADezrMfXwGfUROv\
                n9BM0V/8guBg/1GCYMAAXOLuDz7e/L8u1lAcH3Cfr16xUYDfn+8ecTBuEMBesLDuvk98vaNwLW3P3r2v8V/cUh9NYPGifeCAjzFwkU7OwbHRIH\
                5P39Bi0Z5/8JGSgSINPz3vwGExgJ5A7M0ivS9hoMBOcI8y3n/Ab49/XgBwr9KhMGEwgG3QrQEOQG8ycNCe3w8yfzJu3+NrAM/OgDFhUbPcnw2Q\
                jvJgX4DRclAPMb5fj22gor2wYpBi0JFAr8AAsPEgonEBUIABTsOfXX6uYz++Da9vcqAPQJGeQLQxYGAfrtHAH69tYBHxQL8QwtGPAlIAL0/Q4i\
                I+bo3vz+2hcK9N320Q0WCe/5BCzD+g3wHib02uQP1e3cH+wK8cL60eTYCdf7/gv9ChT8AB4fEgLp/dgaGP4PGBQS7Bnu/OwEQsvu7fD0+/XIEz\
                YYG//1OPvtM/Pm7A8NBxbd8BvtHf7j3foA3SIG0dlayCQuBfcQ/+kKyTU19Qbs+QX4Cg0nDQoF/N/6BAYI7iccGOHY5QP86A7hAv39+gbnFhga\
                HfUw8DftEfP9EeQGQNwyM/rb7ygc9unh/y3hGtL29QbyJBgFLvosAPDzT4He4NYX5ADfEyHyByMQBiwM7hIbKhfvEOUB7A8CI9rt6fkB6vj66A\
                wl++nbATL7G97uE9//38Tv9evsN+/o6RD6BgUH8R3mDNb3AgfwA+3Z6/YC8v8FCfgvCNEW9/0ODEsjB/oVCQ4E6/8i/fQVS+8A8QYA9+ngAeMI\
                DBcVBxcDG+4MqiT9bBzh/yT9Bdsi9wr48D8V6ybM+yjmGUT9IQH//BUC9Obgu88zAQ0F5e8d8SAXJxL0Ii0TAdLf09Xi8toCHvTQLwXeK/QAF/\
                Pn+Rn/8O3j//QPCwwgCw/V6/0WARblDi0N9eUc2w0F/h4E8Nj9/bwD8fAPEyorCQYT8wzB7ewMEwsA4ylP9Pfe7u7lChD8EPUcz/Id9CQe6NLe\
                MBknGOMp3OYZMAXhBQo1+vo+Ixn3Fs3v6Tr/w+0g8CTp4toaAQkNxewzB0LnRwP1AQEZ+wwcGN0QTfXqBdYBFO7I6dcp7qzrCdkiIuwK/R7pCP\
                n/AAEK3PMD+Pn7NCvnCsPrPSMR9fn+K6/QD/HkMkDdBP7Q8+4H2AYEFPkP2xjQFhsUE/4QFhbcKAP7/AAq2OD14v7pISgmEN/qGhQR+/70Gwfu\
                GiLn5R0KAuoP7+bdBiPw3R8DMhbyEvwIBgcKARj16w3zAwkwBhcgK77g+xjz5AcL2fYN7Cv9GAf0DQr/5gUA9RTv4r8g8PDJ+B/v1Anh6RII/f\
                748QMW2f7yAwvb97ftJdH0DPPS/w7DIyUs+PcHMe3w4AcT4cMf7/RNBeYC4AO88fnkDQ/m7glbLOzjy/H9Ifn8AvYFJfYNzOsFHc78GunT2uwI\
                8grt5PgfEAL4Gw/39hz9POz1AyEC7/Ht9fwCHSEJH/LXAhj5Mi4rZB4iOC8CAvHm8gwB
                """),
        // SmolLM2 135M Instruct, Q4_1
        GuardrailProbe(
            fingerprint: "29c947167a0d71b7", layers: [16], readsSchemas: false, scale: 0.00942874, bias: -12.379, threshold: 1.79,
            weights: """
                oyrlBsztAkAFHUElD/7w5eLe3+vPv+D5+wj67SQi++8gsfIH/kQq4CRDEzwWH/rn7/bW6gYJ/y7CFQbrA+f6DRnvKPYK/y0R9UEqKMfk/draCzcw69\
                kU294DygncF/gT8vz0Q+XP9xHRRyowE/3twvrgIwn9HRBJCfvxy7cTIcvR9uj3CN8IHj8lxyHN9g5iDAB4sOP/6N3x8PMfxw04AQbROSnpHBNb6hAM\
                FR0pCbnx0jCB1OC8Pw759iJlAA8apNL7LQIbGw7rBCsxIgXWBRLN5OY+IiL8CxboGB3WAOH7IAkYBxoSuxEQ6/3F0D8dycn3//ch/O4BR/YM4RHt3e\
                sK797V/fT9Lu4dQPUV9t0L6eseL95KWOQXDwMVMegL6NnqBPgLBu/kMhdBH+wcJR4v2+AJQ+HqGuYN6fIHEfQmGDK98+nt/gLK8Tn8UkbjCiMO+gXV\
                6NwMuQIR6/nz8QT+M0zkSRXfDvDhO8DbwRXS/OwY5PEqEyC6COhNKe7b7fTX+jBcB9gENtEiBOXzFgry4uftxcn9m9n9ReMf/8MAzB8hCwU4D/Sl4/\
                bcGMH/OSIvD703q/0CFCUaSe8F+f/rBvP2+M/25PDuC//d0uv67/w6BscwxUnz1RMR7+wK7gEZzNgZ5SIl6r39GEMM9Osb3yal4e/UGCnK9ebt3/4K\
                9ifpputVzN74jL0dA+Ag7yQV2U3c4PlS/f423wMgPeUsFvc4IzQr/OoC9v4IEPb97fTcEyzn7wY+ERjbNb7l
                """),
    ]
}
